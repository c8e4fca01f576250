"""Plans as tables in a terminal."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from pydantic import JsonValue
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ldpstream.agents.cli.plans.model import (
    AttributesPlan,
    Errors,
    MechanismPlan,
    PlanDocument,
    RefusedPart,
    Summary,
)
from ldpstream.agents.cli.plans.planner import ratio_text
from ldpstream.agents.cli.terminal.labels import Ends, label_text
from ldpstream.agents.cli.terminal.tables import FittingTable

_MOST_COLUMNS: Final = 5
_MOST_TOP: Final = 5


def show_plan(
    document: PlanDocument, console: Console, *, ends: Ends = (), weighted: bool = False
) -> None:
    """Print a plan: the verdict, all mechanisms, and the best ones' errors by query.

    `ends` are those of the intervals of a domain that is cut into bins, whose values are `weighted`
    if each has a private weight.
    """
    say = partial(console.print, markup=False, soft_wrap=True)
    say(f"{document.collection}: {document.verdict}")
    say(
        f"standard errors of shares, {document.estimand}; design shares {document.prior}; "
        f"sorted by {document.workload_text}"
    )
    console.print(_mechanisms(document))
    queries = _queries(document, ends)
    if queries.row_count:
        console.print(queries)
    if (bins := document.bins) is not None:
        say(
            f"bins: {bins.recommended} and epsilon = {bins.epsilon:.3g} are recommended for "
            f"{document.respondents:,} reports, densities of up to {bins.peak:g} times the even "
            f"one; {bins.configured} are configured"
        )
    if document.order is not None:
        say(
            "TV: whatever the mechanism, a mean total variation distance of the order "
            f"{document.order:.3g} at least, up to a constant ([CA] Theorems 3 and 4); "
            f"the best above has at most {document.mechanisms[0].total_variation:.3g}"
        )
    for refused in document.refused:
        say(f"no: {_refusal(refused, () if weighted else ends)}")
    for unsuited in document.unsuited:
        say(f"no: {unsuited.mechanism}: needs {unsuited.needs}")
    say("* is the configured one; ~ is from a fixed sample; everything else is exact")


def _mechanisms(document: PlanDocument) -> Table:
    table = FittingTable()
    table.add_column("mechanism", no_wrap=True)
    found = document.optimum
    # Only a bound that is attained shows that no channel is better.
    attained = found is not None and found.bound is not None and found.bound > 0.9999 * found.error
    searched = found is not None and found.reports is not None
    optimum = ["of optimum" if attained else "of best found"] * searched
    wide = document.wanted_width
    needs = "n for 1%" if wide is None else f"n for width {wide:g}"
    errors = "epsilon", "error", "width", "of best", *optimum, needs, "a value", "a range"
    for column in (*errors, "TV at most", "information", "bits", "message", "state"):
        table.add_column(column, justify="right")
    for one in document.mechanisms:
        # The distance of two distributions is at most 1.
        distance = f"{_sampled(one.values)}{_number(one.total_variation)}"
        table.add_row(
            Text(f"{'* ' if one.configured else ''}{one.title}"),
            _epsilon(one.epsilon),
            _number(one.error),
            _number(one.width),
            _ratio(one.ratio),
            *([_ratio(one.of_optimum)] if optimum else []),
            _count(one.respondents_for_1_percent if wide is None else one.respondents_for_width),
            _mean(one.values),
            _mean(one.all_ranges),
            distance if one.total_variation < 1.0 else "1",
            "" if one.information is None else f"{one.information:.3g} bit",
            f"{one.cost.report_bits:,}",
            f"{one.cost.message_bytes:,} B",
            _bytes(one.cost.state_bytes),
        )
    return table


def _queries(document: PlanDocument, ends: Ends) -> Table:
    """Return each published query's errors under the best mechanisms."""
    shown = document.mechanisms[:_MOST_COLUMNS]
    table = FittingTable()
    table.add_column("published query", no_wrap=True)
    for one in shown:
        table.add_column(Text(one.title), justify="right")
    for name, row in _rows(shown, ends):
        errors = [getattr(query, document.estimand) for query in row]
        table.add_row(Text(name), *(_number(error) for error in errors))
    bounds = [one.quantiles[0].bound if one.quantiles else None for one in shown]
    if any(bound is not None for bound in bounds):
        level = f"all prefixes at once, {100 * document.confidence:g}%, at most"
        table.add_row(Text(level), *("" if b is None else _number(b) for b in bounds))
    return table


def _rows(shown: Sequence[MechanismPlan], ends: Ends) -> Iterator[tuple[str, list[Errors]]]:
    first = shown[0]
    for place, configured in enumerate(first.ranges):
        yield f"range {configured.name}", [one.ranges[place] for one in shown]
    for place, quantile in enumerate(first.quantiles):
        name = f"share up to quantile {quantile.p:g}, {label_text(quantile.value, ends)}"
        yield name, [one.quantiles[place] for one in shown]
    count = len(first.top)
    if count > _MOST_TOP and len({value.share for value in first.top}) == 1:
        # No few of them stand out: all have the same share.
        which = "any value" if count == first.values.total else f"any of {count:,} values"
        worst = [max(one.top, key=lambda value: value.respondents) for one in shown]
        yield f"{which}, share {first.top[0].share:.3g}, at most", list[Errors](worst)
        return
    for place, value in enumerate(first.top[:_MOST_TOP]):
        name = f"value {label_text(value.value, ends)}, share {value.share:.3g}"
        yield name, [one.top[place] for one in shown]


def _refusal(refused: RefusedPart, ends: Ends) -> str:
    value, other = (label_text(one, ends) for one in (refused.value, refused.other))
    budgets = refused.allowed, refused.taken
    allowed, taken = ("infinity" if one is None else f"{one:g}" for one in budgets)
    return (
        f"{refused.title} with {_epsilon(refused.epsilon)}: "
        f"from {value} to {other} the policy allows {allowed}, but it spends {taken}"
    )


def _epsilon(epsilon: JsonValue) -> str:
    if isinstance(epsilon, list):
        return ", ".join(_epsilon(part) for part in epsilon)
    if isinstance(epsilon, int | float):
        return f"{epsilon:.4g}"
    return "" if epsilon is None else str(epsilon)


def _mean(summary: Summary | None) -> str:
    return "" if summary is None else f"{_sampled(summary)}{_number(summary.mean)}"


def _sampled(summary: Summary) -> str:
    return "" if summary.predicted == summary.total else "~"


def _ratio(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio_text(ratio)}x"


def _count(number: int | None) -> str:
    if number is None:
        return "> 9e15"
    return f"{number:,}" if number < 10**9 else f"{number:.2g}"


def _number(error: float) -> str:
    return f"{error:.3g}"


def _bytes(size: int) -> str:
    if size < 10_000:
        return f"{size:,} B"
    return f"{size / 1e3:,.0f} kB" if size < 10_000_000 else f"{size / 1e6:,.0f} MB"


def show_attributes(plan: AttributesPlan, console: Console) -> None:
    """Print a plan of records, and how to ask for more."""
    worst = max(one.error for one in plan.attributes)
    level = max(one.proposed_error for one in plan.attributes)
    console.print(
        f"{plan.collection}: a report is about one of {len(plan.attributes)} attributes; at "
        f"{plan.respondents:,} respondents no share has a standard error above {worst:.3g}, with "
        f"the proposed probabilities {level:.3g}",
        markup=False,
        soft_wrap=True,
    )
    table = Table()
    for column in ("attribute", "mechanism"):
        table.add_column(column, no_wrap=True)
    for column in ("probability", "proposed", "error", "proposed error"):
        table.add_column(column, justify="right")
    for one in plan.attributes:
        numbers = one.probability, one.proposed, one.error, one.proposed_error
        table.add_row(one.attribute, one.mechanism, *(f"{number:.3g}" for number in numbers))
    console.print(table)
    console.print("--attribute NAME compares the mechanisms for one of them", markup=False)
