"""The outcome of every report of a message, computed byte by byte from docs/wire.md alone.

It shares no code with the worker: bytes go in, and the number of reports by outcome and the counted
reports come out.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice

NEVER = -(1 << 62)
YEAR_1_MS = -62_135_596_800_000
YEAR_9999_ENDS_MS = 253_402_300_799_999
HEAD_BYTES = 12
RUN_BYTES = 12


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What a message's outcome depends on: the collection's identity, reports, times, windows."""

    fingerprint: bytes
    report_bytes: int
    possible: Callable[[bytes], bool]
    precision_ms: int
    size_ms: int
    pane_ms: int
    grace_ms: int
    future_ms: int


@dataclass
class Expected:
    """One partition: its watermark, the outcomes so far, and the counted reports by pane."""

    rules: Rules
    clock: int = NEVER
    outcomes: Counter[str] = field(default_factory=Counter)
    counted: Counter[tuple[int, bytes]] = field(default_factory=Counter)

    def message(self, value: bytes | None, now_ms: int) -> Counter[str]:
        """Take one message; returns its reports by outcome, one where it cannot be read."""
        runs = read_runs(value, self.rules.fingerprint, self.rules.report_bytes)
        if isinstance(runs, str):
            outcomes = Counter({runs: 1})
        else:
            outcomes = Counter()
            # Earlier runs come first, whatever their order in the frame.
            for time_ms, reports in sorted(runs, key=lambda run: run[0]):
                outcomes += self._run(time_ms, reports, now_ms)
        self.outcomes += outcomes
        return outcomes

    def _run(self, time_ms: int, reports: list[bytes], now_ms: int) -> Counter[str]:
        refused = self._refused(time_ms, now_ms)
        if refused is not None:
            return Counter({refused: len(reports)})
        good = [report for report in reports if self.rules.possible(report)]
        outcomes = Counter({"range": len(reports) - len(good)})
        pane = time_ms // self.rules.pane_ms
        if (pane + 1) * self.rules.pane_ms + self.rules.grace_ms <= self.clock:
            return outcomes + Counter({"late": len(good)})
        self.counted.update((pane, report) for report in good)
        if good:
            self.clock = max(self.clock, min(time_ms, now_ms))
        return outcomes + Counter({"counted": len(good)})

    def _refused(self, time_ms: int, now_ms: int) -> str | None:
        rules = self.rules
        first_ms, last_ms = YEAR_1_MS + rules.size_ms, YEAR_9999_ENDS_MS - rules.size_ms
        if not first_ms <= time_ms <= last_ms:
            return "time"
        if time_ms % rules.precision_ms:
            return "precision"
        return "future" if time_ms > now_ms + rules.future_ms else None


def read_runs(
    value: bytes | None, fingerprint: bytes, report_bytes: int
) -> list[tuple[int, list[bytes]]] | str:
    """Return the times of a message's runs with their reports, or why it is refused."""
    value = value or b""
    runs = int.from_bytes(value[2:4], "little")
    if len(value) < HEAD_BYTES or value[0] != 1 or value[1] != 0 or runs == 0:
        return "undecodable"
    if value[4:12] != fingerprint:
        return "fingerprint"
    begin = HEAD_BYTES + RUN_BYTES * runs
    if len(value) < begin:
        return "undecodable"
    table = [value[at : at + RUN_BYTES] for at in range(HEAD_BYTES, begin, RUN_BYTES)]
    times_ms = [int.from_bytes(run[:8], "little", signed=True) for run in table]
    counts = [int.from_bytes(run[8:], "little") for run in table]
    if 0 in counts or len(value) != begin + sum(counts) * report_bytes:
        return "undecodable"
    reports = (value[at : at + report_bytes] for at in range(begin, len(value), report_bytes))
    return [(at, list(islice(reports, many))) for at, many in zip(times_ms, counts, strict=True)]
