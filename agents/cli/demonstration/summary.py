"""The summary of a demonstration: whether all reports are accounted for, and the bounds hold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ldpstream.agents.cli.demonstration.visits import SentReports, TruthComparison, compare
from ldpstream.agents.cli.terminal.tables import percent, reasons_text
from ldpstream.agents.document.answers import CollectionStatus, WindowState
from ldpstream.agents.document.model import EstimateDocument
from ldpstream.mechanisms.base.texts import count

WINDOWS_CHECKED: Final = 1_000
_TOP: Final = 10


@dataclass(frozen=True, kw_only=True)
class DemoSummary:
    """What the devices sent, what the worker counted, and its windows by start in epoch ms.

    `documents` are the newest final windows over the whole domain.
    """

    sent: SentReports
    status: CollectionStatus
    windows: Mapping[int, WindowState]
    documents: Mapping[int, EstimateDocument]

    @property
    def accounted(self) -> bool:
        """Whether the numbers of counted, late and rejected reports are as sent."""
        decided = self.status.counted, self.status.late, self.status.rejected
        return decided == (self.sent.counted, self.sent.late, self.sent.rejected)

    @property
    def differences(self) -> list[str]:
        """The windows that are not final, or have another number of reports than was sent."""
        problems = []
        for start_ms in self.sent.newest(WINDOWS_CHECKED):
            window = self.windows.get(start_ms)
            n = self.sent.n(start_ms)
            if window is None or not window.final:
                problems.append(f"a window of {n:,} reports is not final")
            elif window.n != n:
                problems.append(f"{window.window.start} has {window.n:,} of {n:,} reports")
        return problems

    @property
    def good(self) -> bool:
        """Whether the demonstration shows what it should."""
        return self.accounted and not self.differences and self.sent.counted > 0

    @property
    def comparisons(self) -> list[TruthComparison]:
        """All values of all documents, with the truth."""
        return [
            comparison
            for document in self.documents.values()
            for comparison in compare(document, self.sent)
        ]


def print_summary(summary: DemoSummary, console: Console) -> None:
    """Print the summary; what is wrong is bold and red."""
    sent, status = summary.sent, summary.status
    _print_line(console, "sent", f"{count(sent.total, 'report')}")
    _print_line(console, "counted", f"{status.counted:,}")
    late = f"{status.late:,}; the devices sent {sent.late:,} too late on purpose"
    _print_line(console, "late", late)
    bad = f"{status.rejected:,}; the devices sent {sent.rejected:,} bad ones on purpose"
    reasons = reasons_text(status)
    _print_line(console, "rejected", f"{bad} ({reasons})" if reasons else bad)
    total = status.counted + status.late + status.rejected
    if summary.accounted:
        _print_line(console, "accounted", f"counted + late + rejected = sent = {total:,}")
    else:
        _print_failure(
            console,
            "NOT ACCOUNTED",
            f"counted + late + rejected = {total:,}, but the devices sent {sent.total:,}: "
            f"{sent.counted:,} to count, {sent.late:,} late, {sent.rejected:,} bad",
        )
    differences = summary.differences
    if differences:
        _print_failure(console, "WINDOWS DIFFER", "; ".join(differences))
    else:
        number = len(sent.newest(WINDOWS_CHECKED))
        _print_line(
            console, "windows", f"{number} final, each with exactly the reports sent for it"
        )
    for problem in status.problems:
        _print_failure(console, "PROBLEM", problem)
    _print_line(console, "bounds", coverage(summary.comparisons, _confidence(summary)))
    if summary.documents:
        # The window with the most reports, since the last one ends early; the newest of several.
        _, fullest = max(summary.documents.items(), key=lambda item: (item[1].n, item[0]))
        console.print(_top_places(fullest, sent))


def _top_places(document: EstimateDocument, sent: SentReports) -> Table:
    """Return a table of the largest shares with their bounds, next to the truth."""
    window = document.window
    assert window is not None
    caption = f"top places of {window.start} to {window.end}, {count(document.n, 'report')}"
    table = Table(title=Text(caption), title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("place", no_wrap=True)
    for column in ("true", "estimate", "low", "high"):
        table.add_column(column, justify="right", no_wrap=True)
    for comparison in compare(document, sent)[:_TOP]:
        entry = comparison.entry
        shares = comparison.truth, entry.share, entry.low, entry.high
        style = "red" if comparison.inside is False else ""
        table.add_row(Text(comparison.name), *map(percent, shares), style=style)
    return table


def coverage(comparisons: Sequence[TruthComparison], confidence: float) -> str:
    """Return a text that says how many true shares are inside their bounds."""
    bounded = [comparison.inside for comparison in comparisons if comparison.inside is not None]
    if not bounded:
        return "no final window has enough reports for estimates"
    covered = sum(bounded)
    return (
        f"{covered:,} of {len(bounded):,} true shares are inside their "
        f"{100 * confidence:g}% bounds: {100 * covered / len(bounded):.1f}%"
    )


def _confidence(summary: DemoSummary) -> float:
    return max((document.confidence for document in summary.documents.values()), default=0.0)


def _print_line(console: Console, name: str, text: str) -> None:
    console.print(Text(f"{name:<10} {text}"))


def _print_failure(console: Console, name: str, text: str) -> None:
    console.print(Text(f"{name}: {text}", style="bold red"))
