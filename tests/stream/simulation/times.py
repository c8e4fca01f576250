"""Event time and arrival time: who dates records, and what an honest report may count on.

9. While nothing but reports has moved a partition's clock, no report is late that arrived within
   the grace of its event time, whatever others are dated.

Brokers date records in half of the worlds, senders in a quarter, and in the rest senders lie; where
they lie nothing is promised.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from ldpstream.agents.partition.arrival import Arrivals, Dates
from ldpstream.agents.state.windows import NEVER
from tests.stream.simulation.violation import demand

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.stream.simulation.worker import Fate, OwnedPartition, Watched
    from tests.stream.simulation.world import World

DATED: Final = ("by brokers", "by brokers", "by senders", "by liars")
_LIES: Final = (0, -40, 3, 0, 9, -2)


@dataclass
class Times:
    """The arrivals of a run's messages, and how far anything but reports moved which clock."""

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
        """Take what has been produced in this step."""
        for p, source in enumerate(self.world.source):
            self.arrived[p] += [self.world.wall_ms] * (len(source) - len(self.arrived[p]))

    def dates(self, p: int, offsets: range) -> Dates:
        """The timestamps of records."""
        true = self.arrived[p][offsets.start : offsets.stop]
        if self.dated == "by liars":
            true = [
                time_ms + _LIES[offset % len(_LIES)]
                for offset, time_ms in zip(offsets, true, strict=True)
            ]
        return Dates(true, self.dated == "by brokers")

    def arrivals(self, p: int, offsets: range, held: OwnedPartition, now_ms: int) -> Arrivals:
        """What a worker knows of the messages that it has read together."""
        dates = replace(self.dates(p, offsets), since_ms=held.ended_ms)
        return dates.arrivals(now_ms=now_ms)

    def loaded(self, p: int, part: Watched) -> None:
        """Know what moved the clock of a partition that has been loaded."""
        head = part.base
        part.moved = self._moved.get((p, head.epoch, head.seq), NEVER)
        if part.work.clock > head.clock:
            part.moved = max(part.moved, part.work.clock)

    def flushed(self, p: int, part: Watched) -> None:
        """Keep it with the head that is on its way."""
        head = part.flushes.flight
        if head is not None:
            self._moved[p, head.epoch, head.seq] = part.moved

    def check(self, p: int, part: Watched, fates: Sequence[Fate]) -> None:
        """Hold the fates of what was just taken in against the rule."""
        window = self.world.context.window
        if not self.checked or self.dated == "by liars":
            return
        for offset, index, fate in fates:
            reports, arrived = self.world.source[p][offset].reports, self.arrived[p][offset]
            demand(index < len(reports), f"(1) no report {index} at offset {offset}")
            report = reports[index]
            if fate in ("counted", "late") and arrived - report.time_ms <= window.grace_ms:
                self.seen += 1
            if arrived <= self.world.lagged_ms(p):
                continue  # A new leader may have said that the log ended before it.
            if fate == "late" and window.pane(report.time_ms) >= window.closed(part.moved):
                delay = arrived - report.time_ms
                # Some workers' clocks are ahead by as much.
                slack = 0 if self.dated == "by brokers" else 1
                demand(delay + slack > window.grace_ms, f"(9) late after {delay} ms: {report}")
