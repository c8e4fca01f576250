"""Rule 14 taken away: states change their format otherwise, and heads say something else."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ldpstream.agents.partition.flushes import Flush
from ldpstream.agents.partition.loading import FormatSwitch
from ldpstream.agents.state.context import NEWEST
from ldpstream.agents.state.records import Head
from tests.stream.simulation.patched import with_partition
from tests.stream.simulation.upgrade import UpgradeWorker, UpgradeWorld
from tests.stream.simulation.worker import Watched
from tests.stream.simulation.world import World

_SWITCH = "ldpstream.agents.partition.partition.FormatSwitch"
_MORE = "ldpstream.agents.partition.partition.reads_more"
_GATHERS = "ldpstream.agents.partition.closing.GATHERS"


class AtOnce(FormatSwitch):
    """The format rises as soon as all heads allow it."""

    def look(self, work: Head, heads: Sequence[Head], *, now_ms: int) -> tuple[Head, bool]:
        self._context = replace(self._context, switch_ms=0)
        return super().look(work, heads, now_ms=now_ms)


class LastIgnored(FormatSwitch):
    """What the last partition's head says is ignored."""

    def look(self, work: Head, heads: Sequence[Head], *, now_ms: int) -> tuple[Head, bool]:
        ignored = replace(heads[-1], reads=NEWEST)
        return super().look(work, [*heads[:-1], ignored], now_ms=now_ms)


class Suspended(FormatSwitch):
    """Time in which nobody has looked counts towards the wait."""

    def look(self, work: Head, heads: Sequence[Head], *, now_ms: int) -> tuple[Head, bool]:
        self._looks._gap_ms = 1_000
        return super().look(work, heads, now_ms=now_ms)


class OwnHead(FormatSwitch):
    """Each partition moves on by itself, once its own head allows it."""

    def __init__(self, *told: object) -> None:
        super().__init__(*told)
        self._own, self._partition = self._partition, 0

    def look(self, work: Head, heads: Sequence[Head], *, now_ms: int) -> tuple[Head, bool]:
        return super().look(replace(work, partitions=0), [heads[self._own]], now_ms=now_ms)


class SwitchedBack(Watched):
    """An owner writes the format that it has begun with, even after a switch."""

    def prepare(self) -> None:
        super().prepare()
        self.begun = self.work.format

    def flush(self) -> Flush | None:
        work = self.work
        if self.base.format == work.format:
            self.work = replace(work, format=self.begun)
        flush = super().flush()
        self.work = work
        return flush


UPGRADE_MUTANTS: Mapping[str, type[World]] = {
    "14 moved on at once": UpgradeWorld.with_change("AtOnce", AtOnce, _SWITCH),
    "14 one partition ignored": UpgradeWorld.with_change("LastIgnored", LastIgnored, _SWITCH),
    "14 suspended while it waits": UpgradeWorld.with_change("Suspended", Suspended, _SWITCH),
    "14 each partition alone": UpgradeWorld.with_change("OwnHead", OwnHead, _SWITCH),
    "14 moved back": with_partition(SwitchedBack, UpgradeWorld, worker=UpgradeWorker),
    "14 idle partitions say nothing": UpgradeWorld.with_change("Silent", lambda *_: False, _MORE),
    "14 gathered in format 1": UpgradeWorld.with_change("Gathered", 1, _GATHERS),
}
