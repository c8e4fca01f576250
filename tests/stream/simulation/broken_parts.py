"""The rules of `minimum` taken away: what a part is, when panes are released, what is answered."""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from ldpstream.agents.state.closing import make_parts, store_parts
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.disclosure_groups import DisclosureGroup
from ldpstream.agents.state.owner_cells import OwnedCells
from ldpstream.agents.state.records import Head
from ldpstream.agents.state.releases import Releases, Reserved
from ldpstream.agents.state.replica import Replica, expired, reports_by_pane
from ldpstream.agents.state.view import Snapshot, first_kept, panes_between, snapshot
from ldpstream.agents.state.windows import NEVER
from tests.stream.simulation.curious import WINDOWS, CuriousWorld, Patched
from tests.stream.simulation.setting import Setting

_PARTITION = "ldpstream.agents.state"


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


class LiveView(CuriousWorld):
    """Answers below the minimum are withheld, and others are the current totals."""

    def answer(
        self, replicas: Sequence[Replica], start_ms: int, end_ms: int, *, final: bool
    ) -> Snapshot:
        found = snapshot(self.context, replicas, start_ms, end_ms)
        withheld = found.n < self.context.minimum
        return replace(found, chunks=() if withheld else found.chunks, withheld=withheld)


class RoundedInward(CuriousWorld):
    """A part is answered as far as the span that was asked for reaches."""

    def answer(
        self, replicas: Sequence[Replica], start_ms: int, end_ms: int, *, final: bool
    ) -> Snapshot:
        found = super().answer(replicas, start_ms, end_ms, final=final)
        if found.withheld or (found.start_ms, found.end_ms) == (start_ms, end_ms):
            return found
        return snapshot(self.context, replicas, start_ms, end_ms)


class PendingAnswered(CuriousWorld):
    """A span with pending panes is answered without them even where it is final."""

    def answer(
        self, replicas: Sequence[Replica], start_ms: int, end_ms: int, *, final: bool
    ) -> Snapshot:
        found = super().answer(replicas, start_ms, end_ms, final=final)
        kept = snapshot(self.context, replicas, start_ms, end_ms)
        enough = found.withheld and kept.n >= self.context.minimum
        return kept if enough else found


class PartsOfWhatIsKept(CuriousWorld):
    """Parts are made for every answer, from the first pane that is kept."""

    def answer(
        self, replicas: Sequence[Replica], start_ms: int, end_ms: int, *, final: bool
    ) -> Snapshot:
        asked = panes_between(self.context, start_ms, end_ms)
        closed = min(head.closed for head in _heads(replicas))
        counted = sorted(reports_by_pane(replicas, expired(replicas), closed).items())
        made = make_parts(self.context.minimum, ((pane, n, n) for pane, n in counted))
        return _whole(self, replicas, [p for p in made if _touches(p, asked)], asked)


def _touches(part: DisclosureGroup, asked: range) -> bool:
    return part.first < asked.stop and asked.start < part.end


class WhatIsLeft(Patched):
    """A part with panes that some partitions have dropped is answered without these."""

    changes = MappingProxyType(
        {"ldpstream.agents.web.estimates.first_kept": lambda _, replicas: expired(replicas)}
    )

    def answer(
        self, replicas: Sequence[Replica], start_ms: int, end_ms: int, *, final: bool
    ) -> Snapshot:
        asked = panes_between(self.context, start_ms, end_ms)
        return _whole(self, replicas, replicas[0].parts().touching(asked.start, asked.stop), asked)


class BehindAnswered(CuriousWorld):
    """A part is answered by a worker that has not read all of it yet."""

    def answer(
        self, replicas: Sequence[Replica], start_ms: int, end_ms: int, *, final: bool
    ) -> Snapshot:
        asked = panes_between(self.context, start_ms, end_ms)
        parts = replicas[0].parts().touching(asked.start, asked.stop)
        if parts and min(asked.start, parts[0].first) < first_kept(self.context, replicas):
            parts = []
        return _whole(self, replicas, parts, asked)


# What a part is.


def _with_a_rest(
    minimum: int, reports: Iterable[tuple[int, int, int]]
) -> Iterator[DisclosureGroup]:
    reports = [*reports]
    made = [*make_parts(minimum, reports)]
    yield from made
    end = made[-1].end if made else reports[0][0] if reports else 0
    rest = [(pane, n) for pane, n, _ in reports if pane >= end and n]
    if rest:
        yield DisclosureGroup(rest[0][0], rest[-1][0] + 1, sum(n for _, n in rest))


class NothingPending(Patched):
    """The panes after the last part are a part, however small."""

    changes = MappingProxyType({f"{_PARTITION}.closing.make_parts": _with_a_rest})


def _once_closed_anywhere(
    context: Context,
    cells: OwnedCells,
    work: Head,
    replicas: Sequence[Replica],
    _: int,
) -> Head:
    closed = max(head.closed for head in _heads(replicas))
    cells.examined = NEVER
    return store_parts(context, cells, work, replicas, closed)


class ClosedAnywhere(Patched):
    """Panes are grouped once one partition has closed them."""

    changes = MappingProxyType({f"{_PARTITION}.closing.store_parts": _once_closed_anywhere})


# When panes are released.


class LongPanes(Patched):
    """A world in which a pane is released of again and again, from several partitions."""

    def choose_setting(self, rng: random.Random) -> Setting:
        setting = super().choose_setting(rng)
        context = replace(setting.context, window=WINDOWS[-1], minimum=2, release_ms=0)
        return replace(setting, context=context)

    def choose_partitions(self, rng: random.Random) -> int:
        return 3


class OneTooFew(Releases):
    """One report less than `minimum` is left out."""

    def release(self, replicas: Sequence[Replica], work: Head, *, now_ms: int) -> bool:
        minimum = self._context.minimum
        self._context = replace(self._context, minimum=minimum - 1)
        released = super().release(replicas, work, now_ms=now_ms)
        self._context = replace(self._context, minimum=minimum)
        return released


class TooFewLeftOut(Patched):
    """One report less than `minimum` is left out."""

    changes = MappingProxyType({f"{_PARTITION}.partition.Releases": OneTooFew})


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


class ChosenAnew(LongPanes):
    """Each release chooses again which reports it leaves out."""

    changes = MappingProxyType(
        {
            f"{_PARTITION}.partition.Releases": Anew,
            f"{_PARTITION}.releases.Reserved": Turned,
        }
    )


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


class ReleasedWithAnyMore(Patched):
    """A release follows whenever anything more has been counted."""

    changes = MappingProxyType({f"{_PARTITION}.partition.Releases": AnyMore})


PART_MUTANTS = {
    "minimum: the live view": LiveView,
    "minimum: rounded inward": RoundedInward,
    "minimum: pending panes answered": PendingAnswered,
    "minimum: parts of what is kept": PartsOfWhatIsKept,
    "minimum: expiry by partition": WhatIsLeft,
    "minimum: answered from behind": BehindAnswered,
    "minimum: nothing pending": NothingPending,
    "minimum: closed anywhere": ClosedAnywhere,
    "minimum: too few left out": TooFewLeftOut,
    "minimum: chosen anew": ChosenAnew,
    "minimum: released with any more": ReleasedWithAnyMore,
}
