"""The engine's targets, judged within one run."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from benchmarks.engine.cost import Cost
from benchmarks.engine.getmany import GETMANY
from benchmarks.engine.speed import FAUST, QUIX, WORKER


@dataclass(frozen=True)
class Target:
    """One target: the result, None if it was not measured, and the least that meets it."""

    what: str
    reached: float | None
    least: float

    @property
    def met(self) -> bool:
        """Whether the target is met."""
        return self.reached is not None and self.reached >= self.least


ASKED = (
    (WORKER, 1_000, None, 5e6),
    (WORKER, 1, GETMANY, 0.6),
    (WORKER, 1, FAUST, 20.0),
    (WORKER, 1_000, FAUST, 20.0),
    (WORKER, 1, QUIX, 10.0),
    (WORKER, 1_000, QUIX, 10.0),
)
"""The reader, reports a message, the peer on the same stream, and the least ratio; without a peer,
the least reports a second of processor time."""


def targets(costs: Sequence[Cost], sizes: Collection[int]) -> list[Target]:
    """Return the targets for frames of these sizes, in reports a second of processor time."""
    speed = {(cost.reader, cost.reports_a_message): cost.of_a_core for cost in costs}
    found = []
    for reader, size, peer, least in ASKED:
        if size not in sizes:
            continue
        reached, beside = speed.get((reader, size)), speed.get((peer or "", size))
        frames = "singles" if size == 1 else f"frames of {size:,}"
        if peer is None:
            found.append(Target(f"{frames}: {reader}, reports/s of a core", reached, least))
        else:
            ratio = None if reached is None or beside is None else reached / beside
            found.append(Target(f"{frames}: {reader} / {peer}", ratio, least))
    return found
