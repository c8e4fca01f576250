"""The rules of `minimum_block` taken away: which blocks are merged, and what is masked."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

import numpy as np

from ldpstream.agents.state.disclosure_groups import Merged, add_parts, blocks_of_reports
from ldpstream.agents.state.records import Head
from ldpstream.agents.state.releases import Releases
from ldpstream.agents.state.replica import Replica
from ldpstream.agents.state.view import Snapshot, answer
from ldpstream.mechanisms.base.arrays import Integers
from ldpstream.mechanisms.interface.mechanism import Statistic
from ldpstream.mechanisms.wire.spec import CollectionSpec
from tests.stream.simulation.curious_blocks import BlockWorld

_MERGED: Final = "ldpstream.agents.state.disclosure_groups.merged_blocks"

Masked = tuple[Statistic, Merged | None]


class NoneMerged(BlockWorld):
    """All blocks are answered."""

    changes = MappingProxyType({_MERGED: lambda reports, _: np.zeros(reports.size, np.bool_)})


def _without_a_large_one(reports: Integers, minimum: int) -> Merged:
    return reports < minimum


class SmallOnesAlone(BlockWorld):
    """Small blocks are merged with each other, however few reports they have together."""

    changes = MappingProxyType({_MERGED: _without_a_large_one})


class OfTheSum(BlockWorld):
    """Which blocks are merged follows from the sum that is answered, not from its parts."""

    @staticmethod
    def masked(spec: CollectionSpec, minimum: int, parts: Iterable[Statistic]) -> Masked:
        return add_parts(spec, minimum, [sum(parts, spec.mechanism.empty())])


class OfTheLastPart(BlockWorld):
    """A sum merges what the last of its parts does."""

    @staticmethod
    def masked(spec: CollectionSpec, minimum: int, parts: Iterable[Statistic]) -> Masked:
        taken = [*parts]
        _, merged = add_parts(spec, minimum, taken[-1:])
        total = sum(taken, spec.mechanism.empty())
        if merged is not None:
            hidden = merged[blocks_of_reports(spec)]
            total[hidden], total[np.argmax(hidden)] = 0, total[hidden].sum()
        return total, merged


class NotMasked(BlockWorld):
    """The statistic of an answer keeps what merged blocks hold."""

    @staticmethod
    def masked(spec: CollectionSpec, minimum: int, parts: Iterable[Statistic]) -> Masked:
        taken = [*parts]
        _, merged = add_parts(spec, minimum, taken)
        return sum(taken, spec.mechanism.empty()), merged


class OpenReleases(Releases):
    """Releases made as if `minimum_block` were off."""

    def release(self, replicas: Sequence[Replica], work: Head, *, now_ms: int) -> bool:
        self._context = replace(self._context, minimum_block=1)
        return super().release(replicas, work, now_ms=now_ms)


class OpenPanes(BlockWorld):
    """Releases of open panes are answered, with their blocks merged as in a part."""

    changes = MappingProxyType({"ldpstream.agents.state.partition.Releases": OpenReleases})

    def answer(
        self, replicas: Sequence[Replica], start_ms: int, end_ms: int, *, final: bool
    ) -> Snapshot:
        context = replace(self.context, minimum_block=1)
        found = answer(context, replicas, start_ms, end_ms, final=final)
        return replace(found, part_ends=()) if not final else found


BLOCK_MUTANTS = {
    "minimum_block: nothing merged": NoneMerged,
    "minimum_block: small ones alone": SmallOnesAlone,
    "minimum_block: of the sum": OfTheSum,
    "minimum_block: of the last part": OfTheLastPart,
    "minimum_block: not masked": NotMasked,
    "minimum_block: open panes": OpenPanes,
}
