"""The rules of `minimum` and `minimum_block` taken away: parts, releases, answers, blocks."""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

import numpy as np

from ldpstream.agents.state.closing import make_parts, store_parts
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.disclosure_groups import (
    DisclosureGroup,
    Merged,
    add_parts,
    blocks_of_reports,
)
from ldpstream.agents.state.owner_cells import OwnedCells
from ldpstream.agents.state.records import Head
from ldpstream.agents.state.releases import Releases, Reserved
from ldpstream.agents.state.replica import Replica, expired, reports_by_pane
from ldpstream.agents.state.view import Snapshot, answer, first_kept, panes_between, snapshot
from ldpstream.agents.state.windows import NEVER
from ldpstream.mechanisms.base.arrays import Integers
from ldpstream.mechanisms.interface.mechanism import Statistic
from ldpstream.mechanisms.wire.spec import CollectionSpec
from tests.stream.simulation.curious import WINDOWS, CuriousWorld, Patched
from tests.stream.simulation.curious_attributes import AttributeWorld
from tests.stream.simulation.curious_blocks import BlockWorld
from tests.stream.simulation.patched import mutant
from tests.stream.simulation.setting import Setting

_STATE = "ldpstream.agents.state"


def _heads(replicas: Sequence[Replica]) -> list[Head]:
    return [replica.head for replica in replicas if replica.head is not None]


def _whole(
    world: CuriousWorld, replicas: Sequence[Replica], parts: Sequence[DisclosureGroup], asked: range
) -> Snapshot:
    """Sum up all panes from the first to the last of some parts, as the replicas have them."""
    start = world.context.window.start
    if not parts:
        return Snapshot(start(asked.start), start(asked.stop), (), 0, 0, 0, withheld=True)
    low, high = min(asked.start, parts[0].first), max(asked.stop, parts[-1].end)
    return snapshot(world.context, replicas, start(low), start(high))


# What is answered.


@mutant("minimum: the live view", 2, CuriousWorld)
class LiveView(CuriousWorld):
    """Answers below the minimum are withheld, and others are the current totals."""

    def answer(self, replicas: Sequence[Replica], *span: int, final: bool) -> Snapshot:
        found = snapshot(self.context, replicas, *span)
        withheld = found.n < self.context.minimum
        return replace(found, chunks=() if withheld else found.chunks, withheld=withheld)


@mutant("minimum: rounded inward", 8, CuriousWorld)
class RoundedInward(CuriousWorld):
    """A part is answered as far as the span that was asked for reaches."""

    def answer(self, replicas: Sequence[Replica], *span: int, final: bool) -> Snapshot:
        found = super().answer(replicas, *span, final=final)
        if found.withheld or (found.start_ms, found.end_ms) == span:
            return found
        return snapshot(self.context, replicas, *span)


@mutant("minimum: pending panes answered", 2, CuriousWorld)
class PendingAnswered(CuriousWorld):
    """A span with pending panes is answered without them even where it is final."""

    def answer(self, replicas: Sequence[Replica], *span: int, final: bool) -> Snapshot:
        found = super().answer(replicas, *span, final=final)
        kept = snapshot(self.context, replicas, *span)
        enough = found.withheld and kept.n >= self.context.minimum
        return kept if enough else found


@mutant("minimum: parts of what is kept", 8, CuriousWorld)
class PartsOfWhatIsKept(CuriousWorld):
    """Parts are made for every answer, from the first pane that is kept."""

    def answer(self, replicas: Sequence[Replica], *span: int, final: bool) -> Snapshot:
        asked = panes_between(self.context, *span)
        closed = min(head.closed for head in _heads(replicas))
        counted = sorted(reports_by_pane(replicas, expired(replicas), closed).items())
        made = make_parts(self.context.minimum, ((pane, n, n) for pane, n in counted))
        return _whole(self, replicas, [p for p in made if _touches(p, asked)], asked)


def _touches(part: DisclosureGroup, asked: range) -> bool:
    return part.first < asked.stop and asked.start < part.end


@mutant("minimum: expiry by partition", 8, Patched)
class WhatIsLeft(Patched):
    """A part with panes that some partitions have dropped is answered without these."""

    changes = MappingProxyType(
        {"ldpstream.agents.web.estimates.first_kept": lambda _, replicas: expired(replicas)}
    )

    def answer(self, replicas: Sequence[Replica], *span: int, final: bool) -> Snapshot:
        asked = panes_between(self.context, *span)
        return _whole(self, replicas, replicas[0].parts().touching(asked.start, asked.stop), asked)


@mutant("minimum: answered from behind", 8, CuriousWorld)
class BehindAnswered(CuriousWorld):
    """A part is answered by a worker that has not read all of it yet."""

    def answer(self, replicas: Sequence[Replica], *span: int, final: bool) -> Snapshot:
        asked = panes_between(self.context, *span)
        parts = replicas[0].parts().touching(asked.start, asked.stop)
        if parts and min(asked.start, parts[0].first) < first_kept(self.context, replicas):
            parts = []
        return _whole(self, replicas, parts, asked)


# What a part is.


@mutant("minimum: nothing pending", 7, Patched, f"{_STATE}.closing.make_parts")
def _with_a_rest(
    minimum: int, reports: Iterable[tuple[int, int, int]]
) -> Iterator[DisclosureGroup]:
    """The panes after the last part are a part, however small."""
    reports = [*reports]
    made = [*make_parts(minimum, reports)]
    yield from made
    end = made[-1].end if made else reports[0][0] if reports else 0
    rest = [(pane, n) for pane, n, _ in reports if pane >= end and n]
    if rest:
        yield DisclosureGroup(rest[0][0], rest[-1][0] + 1, sum(n for _, n in rest))


@mutant("minimum: closed anywhere", 9, Patched, f"{_STATE}.closing.store_parts")
def _once_closed_anywhere(
    context: Context,
    cells: OwnedCells,
    work: Head,
    replicas: Sequence[Replica],
    _: int,
) -> Head:
    """Panes are grouped once one partition has closed them."""
    closed = max(head.closed for head in _heads(replicas))
    cells.examined = NEVER
    return store_parts(context, cells, work, replicas, closed)


# When panes are released.


class LongPanes(Patched):
    """A world in which a pane is released of again and again, from several partitions."""

    def choose_setting(self, rng: random.Random) -> Setting:
        setting = super().choose_setting(rng)
        context = replace(setting.context, window=WINDOWS[-1], minimum=2, release_ms=0)
        return replace(setting, context=context)

    def choose_partitions(self, rng: random.Random) -> int:
        return 3


@mutant("minimum: too few left out", 5, Patched, f"{_STATE}.partition.Releases")
class OneTooFew(Releases):
    """One report less than `minimum` is left out."""

    def release(self, replicas: Sequence[Replica], work: Head, *, now_ms: int) -> bool:
        minimum = self._context.minimum
        self._context = replace(self._context, minimum=minimum - 1)
        released = super().release(replicas, work, now_ms=now_ms)
        self._context = replace(self._context, minimum=minimum)
        return released


class Turned(Reserved):
    """Now the first partitions' reports are left out, now the last ones'."""

    def choose(self, attribute: int, minimum: int) -> dict[int, int]:
        if sum(map(len, self.reports)) % 2:
            return super().choose(attribute, minimum)
        turned = replace(self, attributes=self.attributes[::-1]).choose_first(attribute, minimum)
        return {len(self.reports) - 1 - p: few for p, few in turned.items()}

    choose_first = Reserved.choose


class Anew(Releases):
    """Each release chooses again which reports it leaves out."""

    def _advance(self, replicas: Sequence[Replica], pane: int, counted: Mapping[int, int]) -> bool:
        last = self._cells.released.get(pane)
        if last is not None:
            self._cells.released[pane] = last._replace(left_out={})
        released = super()._advance(replicas, pane, counted)
        if last is not None and not released:
            self._cells.released[pane] = last
        return released


@mutant("minimum: chosen again", 4, LongPanes)
class ChosenAgain(LongPanes):
    """Each release chooses again which reports it leaves out."""

    changes = MappingProxyType(
        {
            f"{_STATE}.partition.Releases": Anew,
            f"{_STATE}.releases.Reserved": Turned,
        }
    )


@mutant("minimum: released with any more", 6, Patched, f"{_STATE}.partition.Releases")
class AnyMore(Releases):
    """A release follows whenever anything more has been counted."""

    def _advance(self, replicas: Sequence[Replica], pane: int, counted: Mapping[int, int]) -> bool:
        last = self._cells.released.get(pane)
        if last is None:
            return super()._advance(replicas, pane, counted)
        self._cells.released[pane] = last._replace(n=0, counted={})
        released = super()._advance(replicas, pane, counted)
        if not released:
            self._cells.released[pane] = last
        return released


# Attributes.


@mutant("attributes: parts of all", 0, AttributeWorld, f"{_STATE}.closing.make_parts")
def _of_the_reports(
    minimum: int, reports: Iterable[tuple[int, int, int]]
) -> Iterator[DisclosureGroup]:
    """Parts have enough reports about all attributes together."""
    return make_parts(minimum, ((pane, n, n) for pane, _, n in reports))


@mutant("attributes: left out whatever", 82, AttributeWorld, f"{_STATE}.releases.Reserved")
class Whatever(Reserved):
    """Of an attribute too few reports are left out, because others count."""

    def choose(self, attribute: int, minimum: int) -> dict[int, int]:
        found = {p: min(len(some), minimum) for p, some in enumerate(self.attributes)}
        return {p: few for p, few in found.items() if few == minimum}


_MERGED: Final = "ldpstream.agents.state.disclosure_groups.merged_blocks"

Masked = tuple[Statistic, Merged | None]


@mutant("minimum_block: nothing merged", 0, BlockWorld, _MERGED)
def _none_merged(reports: Integers, _: int) -> Merged:
    """All blocks are answered."""
    return np.zeros(reports.size, np.bool_)


@mutant("minimum_block: small ones alone", 0, BlockWorld, _MERGED)
def _without_a_large_one(reports: Integers, minimum: int) -> Merged:
    """Small blocks are merged with each other, however few reports they have together."""
    return reports < minimum


@mutant("minimum_block: of the sum", 4, BlockWorld)
class OfTheSum(BlockWorld):
    """Which blocks are merged follows from the sum that is answered, not from its parts."""

    @staticmethod
    def masked(spec: CollectionSpec, minimum: int, parts: Iterable[Statistic]) -> Masked:
        return add_parts(spec, minimum, [sum(parts, spec.mechanism.empty())])


@mutant("minimum_block: of the last part", 6, BlockWorld)
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


@mutant("minimum_block: not masked", 0, BlockWorld)
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


@mutant("minimum_block: open panes", 8, BlockWorld)
class OpenPanes(BlockWorld):
    """Releases of open panes are answered, with their blocks merged as in a part."""

    changes = MappingProxyType({"ldpstream.agents.state.partition.Releases": OpenReleases})

    def answer(self, replicas: Sequence[Replica], *span: int, final: bool) -> Snapshot:
        context = replace(self.context, minimum_block=1)
        found = answer(context, replicas, *span, final=final)
        return replace(found, part_ends=()) if not final else found
