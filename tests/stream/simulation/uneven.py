"""The simulated world with windows of a calendar, whose days are of different lengths.

Days of 5, 0, 3 and 4 ms stand for those of 25, 0, 23 and 24 hours: everything that turns times into
panes or back must go through the calendar.
"""

import random
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from ldpstream.agents.state.calendar import DAY_MS, Calendar
from ldpstream.agents.state.windows import NEVER, WindowSpec
from tests.stream.simulation.broken_gathered import Partitions
from tests.stream.simulation.curious import CuriousWorld
from tests.stream.simulation.patched import mutant
from tests.stream.simulation.setting import Setting

_USUAL_MS = 4


@dataclass(frozen=True)
class UnevenDays(Calendar):
    """Days of these lengths, again and again, in place of those of a time zone."""

    lengths_ms: tuple[int, ...] = ()

    def start(self, day: int) -> int:
        rounds, rest = divmod(day, len(self.lengths_ms))
        return rounds * sum(self.lengths_ms) + sum(self.lengths_ms[:rest])

    def day(self, time_ms: int) -> int:
        rounds, rest_ms = divmod(time_ms, sum(self.lengths_ms))
        ends = [*accumulate(self.lengths_ms)]
        return rounds * len(ends) + sum(end_ms <= rest_ms for end_ms in ends)

    def days(self, times_ms: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.array([self.day(one) for one in times_ms.tolist()], dtype=np.int64)


CALENDARS = tuple(
    WindowSpec(
        size_ms=days * DAY_MS,
        hop_ms=hop * DAY_MS,
        grace_ms=1,
        idle_ms=3,
        future_ms=1,
        retention_ms=6,
        calendar=UnevenDays(lengths_ms=lengths_ms),
    )
    for days, hop, lengths_ms in ((1, 1, (5, 0, 3, 4)), (2, 1, (4, 3, 5)), (2, 2, (1, 3, 0)))
)


def with_calendar(setting: Setting, rng: random.Random) -> Setting:
    """Return a setting whose windows consist of uneven days."""
    return replace(setting, context=replace(setting.context, window=rng.choice(CALENDARS)))


class UnevenWorld(Partitions):
    """Workers count into windows of a calendar, in several partitions."""

    def choose_setting(self, rng: random.Random) -> Setting:
        return with_calendar(super().choose_setting(rng), rng)


class CuriousUnevenWorld(CuriousWorld):
    """The same with `minimum`, and the attacker who subtracts answers."""

    def choose_setting(self, rng: random.Random) -> Setting:
        return with_calendar(super().choose_setting(rng), rng)


@mutant(
    "calendar: days close by their usual length",
    49,
    UnevenWorld,
    "ldpstream.agents.state.windows.WindowSpec.closed",
)
def _closed_by_length(window: WindowSpec, clock_ms: int) -> int:
    if clock_ms == NEVER:
        return NEVER
    closed = window.pane(clock_ms - window.grace_ms)
    usual_ms = _USUAL_MS * window.pane_ms // DAY_MS
    return closed + (window.start(closed) + usual_ms <= clock_ms - window.grace_ms)
