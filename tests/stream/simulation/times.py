"""Event time and arrival time: who dates records, and the guarantee to honest reports.

9. While nothing but reports, and time where all partitions are idle, has moved a partition's clock,
   no report is late that arrived within the grace of its event time, whatever the dates of others.

Brokers date records in half of the worlds, and senders in a quarter; in the rest senders lie, and
nothing is guaranteed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from ldpstream.agents.state.batch import Arrivals, Dates
from ldpstream.agents.state.windows import NEVER
from tests.stream.simulation.setting import demand

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.stream.simulation.worker import Outcome, OwnedPartition, Watched
    from tests.stream.simulation.world import World

DATED: Final = ("by brokers", "by brokers", "by senders", "by liars")
_LIES: Final = (0, -40, 3, 0, 9, -2)


@dataclass
class Times:
    """The arrivals of a run's messages, and how far anything but reports moved each clock."""

    world: World
    dated: str
    checked: bool = True

    def __post_init__(self) -> None:
        if self.world.wall_ms < 0:
            self.dated = DATED[0]  # Kafka has no records dated before 1970.
        self.arrived: list[list[int]] = [[] for _ in self.world.source]
        self._moved: dict[tuple[int, int, int], int] = {}
        self.seen = 0

    def note(self) -> None:
        """Record the arrivals of messages produced in this step."""
        for p, source in enumerate(self.world.source):
            self.arrived[p] += [self.world.wall_ms] * (len(source) - len(self.arrived[p]))

    def dates(self, p: int, offsets: range) -> Dates:
        """Return the timestamps of records."""
        true = self.arrived[p][offsets.start : offsets.stop]
        if self.dated == "by liars":
            true = [
                time_ms + _LIES[offset % len(_LIES)]
                for offset, time_ms in zip(offsets, true, strict=True)
            ]
        return Dates(true, self.dated == "by brokers")

    def arrivals(self, p: int, offsets: range, held: OwnedPartition, now_ms: int) -> Arrivals:
        """Return what a worker knows about the arrivals of messages that it has read together."""
        dates = replace(self.dates(p, offsets), since_ms=held.ended_ms)
        return dates.arrivals(now_ms=now_ms)

    def loaded(self, p: int, part: Watched) -> None:
        """Restore how far anything but reports has moved the clock of a loaded partition."""
        head = part.base
        part.moved = self._moved.get((p, head.epoch, head.seq), NEVER)
        if part.work.clock > head.clock:
            part.moved = max(part.moved, part.work.clock)

    def flushed(self, p: int, part: Watched) -> None:
        """Keep how far the clock was moved, with the head in flight."""
        head = part.flight
        if head is not None:
            self._moved[p, head.epoch, head.seq] = part.moved

    def check(self, p: int, part: Watched, outcomes: Sequence[Outcome]) -> None:
        """Check the outcomes of messages that were just ingested against the rule."""
        window = self.world.context.window
        if not self.checked or self.dated == "by liars":
            return
        for offset, index, outcome in outcomes:
            reports, arrived = self.world.source[p][offset].reports, self.arrived[p][offset]
            demand(index < len(reports), f"(1) no report {index} at offset {offset}")
            report = reports[index]
            if outcome in ("counted", "late") and arrived - report.time_ms <= window.grace_ms:
                self.seen += 1
            if arrived <= self.world.lagged_ms(p):
                continue  # A lagging leader may have said that the log ended before this message.
            if outcome == "late" and window.pane(report.time_ms) >= window.closed(part.moved):
                delay = arrived - report.time_ms
                # Clocks of workers may be ahead by 1 ms.
                slack = 0 if self.dated == "by brokers" else 1
                demand(delay + slack > window.grace_ms, f"(9) late after {delay} ms: {report}")
