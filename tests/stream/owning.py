"""An owner and a clock for intakes and flushes that run without an engine."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ldpstream.agents.engine.intake import OwnedPartition
from ldpstream.agents.engine.source import steady_ms
from ldpstream.agents.state.flushes import Outcome


@dataclass
class Holder:
    """An owner that records problems."""

    problems: list[str] = field(default_factory=list)

    def fail(self, problem: str) -> None:
        self.problems.append(problem)

    def schedule_flush(self, partition: OwnedPartition) -> None: ...

    def on_flush_committed(self, outcome: Outcome, seconds: float) -> None: ...

    def on_ownership_loss(self, partition: OwnedPartition, *, refused: bool = False) -> None: ...


@dataclass(frozen=True)
class Times:
    """A clock made of functions, which never reports a problem."""

    now_ms: Callable[[], int]
    steady_ms: Callable[[], int] = steady_ms
    seconds: Callable[[], float] = time.monotonic
    problem: str = ""
