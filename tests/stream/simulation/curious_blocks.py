"""The curious world with `minimum_block`: the attacker distinguishes reports by pane and by block.

Every report has a symbol of its own in one of four blocks. For each block that it does not merge,
and for all merged blocks together, an answer shows a set of reports. The sets that sums and
differences of these isolate have `minimum_block` members or more, and an answer's statistic shows
nothing else.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final
from unittest.mock import patch

import numpy as np

from ldpstream.agents.state.closing import Publication
from ldpstream.agents.state.context import Context, WindowTotals
from ldpstream.agents.state.disclosure_groups import Merged, add_parts
from ldpstream.mechanisms.interface.mechanism import Statistic
from ldpstream.mechanisms.wire.spec import CollectionSpec
from tests.stream.harness import make_context
from tests.stream.simulation.curious import (
    SYMBOLS,
    WINDOWS,
    CuriousChecks,
    CuriousWorld,
    Patched,
    demand_none_isolated,
)
from tests.stream.simulation.setting import Setting, demand, write_final

BLOCKS: Final = 4
ENTRIES: Final = SYMBOLS // BLOCKS
"""Entries of the statistic in each block."""
_OF_BLOCK: Final = [((1 << ENTRIES) - 1) << ENTRIES * block for block in range(BLOCKS)]

_before: dict[int, tuple[Statistic, Statistic]] = {}
"""Masked statistics and what they were before, by the identity of the masked one."""


@cache
def _spec() -> CollectionSpec:
    mapping = {
        "mechanism": "block-hadamard",
        "epsilon": 1.0,
        "domain": {"size": BLOCKS * (ENTRIES - 1), "blocks": ENTRIES - 1},
        "precision": "1ms",
    }
    return CollectionSpec.from_mapping("simulated", mapping, base=Path())


@cache
def _context(window: int, finals_a_step: int, minimum: int, block: int, release_ms: int) -> Context:
    keys = {"finals_a_step": finals_a_step, "minimum": minimum, "release_ms": release_ms}
    return make_context(
        WINDOWS[window], spec=_spec(), make_final=write_blocks, chunk=1, minimum_block=block, **keys
    )


def unmasked(totals: WindowTotals) -> tuple[WindowTotals, list[list[int]]]:
    """Return totals before they were masked, and the groups of blocks that they show."""
    masked, before = _before[id(totals.statistic)]
    demand(masked is totals.statistic, "(9) another statistic than the masked one")
    merged = np.zeros(BLOCKS, np.bool_) if totals.merged is None else totals.merged
    want, at = before.reshape(BLOCKS, ENTRIES).copy(), np.flatnonzero(merged)
    if at.size:
        together = want[at].sum()
        want[at] = 0
        want[at[0], 0] = together
    demand((masked == want.ravel()).all(), "(9) merged blocks tell more than their number")
    groups = [[block] for block in np.flatnonzero(~merged).tolist()]
    return replace(totals, statistic=before), [*groups, at.tolist()]


def write_blocks(totals: WindowTotals) -> bytes:
    """Write a final's content before it was masked, and the groups of blocks that it shows."""
    before, groups = unmasked(totals)
    return json.dumps([*json.loads(write_final(before)), groups]).encode()


class BlockChecks(CuriousChecks):
    """The checks of a run, and the sets of reports by block that the attacker has learnt."""

    def __init__(self, world: CuriousWorld) -> None:
        super().__init__(world)
        self.told_blocks: set[int] = set()

    def publish(self, publication: Publication) -> None:
        super().publish(publication)
        told = json.loads(publication.content)
        self.learn_blocks(told[2], told[8])

    def learn_blocks(self, statistic: Sequence[int], groups: list[list[int]]) -> None:
        mask = sum(1 << symbol for symbol, count in enumerate(statistic) if count)
        self.told_blocks |= {mask & sum(_OF_BLOCK[block] for block in group) for group in groups}

    def finish(self) -> None:
        super().finish()
        demand_none_isolated(self.told_blocks, self.world.context.minimum_block, "(9) blocks:")


class BlockWorld(Patched):
    """A curious world of four blocks, some of them rarely reported."""

    checks_class = BlockChecks
    masked = staticmethod(add_parts)

    def __init__(self, seed: int, *, kafka: bool = True) -> None:
        super().__init__(seed, kafka=kafka)
        self.symbols = _symbols(random.Random(seed))

    def choose_setting(self, rng: random.Random) -> Setting:
        _before.clear()
        minimum = rng.choice([2, 3, 5, 8])
        context = _context(
            rng.randrange(len(WINDOWS)),
            rng.choice([1, 16]),
            minimum,
            rng.choice([block for block in (2, 3, 5) if block <= minimum]),
            rng.choice([0, 3]),
        )
        return Setting(context, start_ms=rng.choice([0, -5_000]), ahead_ms=0)

    def patched(self) -> ExitStack:
        stack = super().patched()
        stack.enter_context(patch("ldpstream.agents.state.view.add_parts", self.add_parts))
        return stack

    def add_parts(
        self, spec: CollectionSpec, minimum: int, parts: Iterable[Statistic]
    ) -> tuple[Statistic, Merged | None]:
        taken = [*parts]
        statistic, merged = self.masked(spec, minimum, taken)
        _before[id(statistic)] = statistic, sum(taken, spec.mechanism.empty())
        return statistic, merged

    def read(self, told: WindowTotals) -> WindowTotals:
        before, groups = unmasked(told)
        if not told.withheld:
            self.checks.learn_blocks(before.statistic.tolist(), groups)
        return before


def _symbols(rng: random.Random) -> Iterator[int]:
    """Yield all symbols, in order within a block; some blocks come more often than others."""
    left = [list(range(ENTRIES * block, ENTRIES * (block + 1))) for block in range(BLOCKS)]
    weights = [rng.choice([1, 1, 4, 20]) for _ in range(BLOCKS)]
    while any(left):
        open_weights = [w if rest else 0 for w, rest in zip(weights, left, strict=True)]
        yield rng.choices(left, open_weights)[0].pop(0)
