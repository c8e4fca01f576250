"""Which partitions open windows wait for, for how long, and why.

A window waits for each partition that has not closed all of its panes. It is reported once another
partition has passed the window's end and grace, or, where none has, once the wall clock has, and
the partition would be idle but for something that keeps it from that: so neither a stream that goes
on nor a replay of old reports waits for anything.
"""

import logging
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from ldpstream.agents.engine.clock import WorkerClock
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.listing import oldest_window
from ldpstream.agents.state.partition import Partition
from ldpstream.agents.state.replica import Replica
from ldpstream.agents.state.windows import NEVER
from ldpstream.mechanisms.base.times import format_time

_LOOK_SECONDS: Final = 1.0
_WARN_SECONDS: Final = 300.0
_ELSEWHERE: Final = (
    "another worker owns it, whose status says why; without one its reports are not read"
)
_UNSTORED: Final = "it has closed them, but the broker has not stored that yet"
_FIRST: Final = (
    "all partitions have closed them, but its owner, another worker, has not stored their finals"
)

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Wait:
    """A partition that open windows wait for.

    `window_end_ms`, epoch ms, is the end of the oldest of them; `seconds` is for how long they have
    waited, beyond the idle time.
    """

    partition: int
    window_end_ms: int
    seconds: float
    reason: str

    def __str__(self) -> str:
        """Return it as a sentence."""
        since = f" for {self.seconds:,.0f} s longer than usual" if self.seconds >= 1 else ""
        end = format_time(self.window_end_ms)
        return f"windows up to {end} wait for partition {self.partition}{since}: {self.reason}"


class WindowWaits:
    """Watches which partitions the oldest open window with reports waits for.

    `title` is the collection's name in messages.
    """

    def __init__(self, title: str, context: Context) -> None:
        self._title = title
        self._context = context
        self._warned: set[int] = set()
        self._looked = -_LOOK_SECONDS
        # The window, and since when it has waited for each partition.
        self._since: dict[tuple[int, int], float] = {}
        self.waits: Sequence[Wait] = ()
        """As of the last update."""

    def update(
        self,
        replicas: Sequence[Replica],
        states: Mapping[int, Partition],
        owned: AbstractSet[int],
        *,
        clock: WorkerClock,
    ) -> None:
        """Update `waits` once a second; `states` are those that this worker has loaded."""
        seconds, now_ms, steady_ms = clock.seconds(), clock.now_ms(), clock.steady_ms()
        if seconds - self._looked < _LOOK_SECONDS:
            return
        self._looked = seconds
        window, head = self._context.window, replicas[0].head if replicas else None
        final = NEVER if head is None else head.final
        oldest = oldest_window(self._context, replicas, final)
        if oldest is None:
            self._since, self.waits = {}, ()
            return
        end_ms, stop = window.span(oldest)[1], window.panes(oldest).stop
        passed = any(r.head.closed >= stop for r in replicas if r.head)
        reasons: dict[int, str] = {}
        if passed or now_ms >= end_ms + window.grace_ms:
            open_in = [r for r in replicas if r.head and r.head.closed < stop]
            for replica in open_in:
                p = replica.partition
                state = states.get(p)
                if state is not None and state.work.closed >= stop:
                    reason = _UNSTORED
                else:
                    reason = _reason(
                        replica, state, owned=p in owned, passed=passed, now_ms=steady_ms
                    )
                if reason:
                    reasons[p] = reason
            if not open_in and 0 not in states:
                reasons[0] = _FIRST
        self._since = {(oldest, p): self._since.get((oldest, p), seconds) for p in reasons}
        usual_seconds = (window.idle_ms or 0) / 1000
        self.waits = tuple(
            Wait(p, end_ms, max(0.0, seconds - self._since[oldest, p] - usual_seconds), reason)
            for p, reason in reasons.items()
        )
        self._warned &= reasons.keys()
        for wait in self.waits:
            if wait.seconds >= _WARN_SECONDS and wait.partition not in self._warned:
                self._warned.add(wait.partition)
                log.warning("collection %s: %s", self._title, wait)


def _reason(
    replica: Replica, state: Partition | None, *, owned: bool, passed: bool, now_ms: int
) -> str:
    """Return why a window waits for a partition; empty if it does not.

    `passed` says that another partition has passed the window.
    """
    if state is not None:
        blocked, reason = state.explain_not_idle(now_ms=now_ms)
        return reason if passed or blocked else ""
    if owned:
        return "this worker has not loaded it yet"
    idle = replica.head is not None and replica.head.idle
    return _ELSEWHERE if passed and not idle else ""
