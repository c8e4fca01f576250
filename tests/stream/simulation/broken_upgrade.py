"""Rule 14 taken away: states move on otherwise, and heads say something else."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ldpstream.agents.partition.flushes import Flush
from ldpstream.agents.partition.upgrade import FormatSwitch
from ldpstream.agents.state.formats import NEWEST
from ldpstream.agents.state.records import Head
from tests.stream.simulation.upgrade import UpgradeWorker, UpgradeWorld
from tests.stream.simulation.worker import Watched
from tests.stream.simulation.world import World

_SWITCH = "ldpstream.agents.partition.partition.FormatSwitch"
_MORE = "ldpstream.agents.partition.partition.reads_more"
_GATHERS = "ldpstream.agents.partition.finals.GATHERS"


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
    """However long nobody has looked, that counts as if nothing had happened."""

    def look(self, work: Head, heads: Sequence[Head], *, now_ms: int) -> tuple[Head, bool]:
        self._looks._gap_ms = 1_000
        return super().look(work, heads, now_ms=now_ms)


class OwnHead(FormatSwitch):
    """Each partition moves on alone, when its own head says that it may."""

    def __init__(self, *told: object) -> None:
        super().__init__(*told)
        self._own, self._partition = self._partition, 0

    def look(self, work: Head, heads: Sequence[Head], *, now_ms: int) -> tuple[Head, bool]:
        return super().look(replace(work, partitions=0), [heads[self._own]], now_ms=now_ms)


class SwitchedBack(Watched):
    """An owner writes the format that it has begun with."""

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


def _patched(name: str, where: str, change: object) -> type[World]:
    return type(name, (UpgradeWorld,), {"changes": {where: change}})


def _with_partition(partition: type[Watched]) -> type[World]:
    worker = type(partition.__name__, (UpgradeWorker,), {"partition_class": partition})
    return type(partition.__name__, (UpgradeWorld,), {"worker_class": worker})


UPGRADE_MUTANTS: Mapping[str, type[World]] = {
    "14 moved on at once": _patched("AtOnce", _SWITCH, AtOnce),
    "14 one partition ignored": _patched("LastIgnored", _SWITCH, LastIgnored),
    "14 suspended while it waits": _patched("Suspended", _SWITCH, Suspended),
    "14 each partition alone": _patched("OwnHead", _SWITCH, OwnHead),
    "14 moved back": _with_partition(SwitchedBack),
    "14 idle partitions say nothing": _patched("Silent", _MORE, lambda *_: False),
    "14 gathered in format 1": _patched("Gathered", _GATHERS, 1),
}
