"""Closed panes in the simulation: several partitions, and rule 13 taken away."""

from functools import lru_cache

import pytest

from ldpstream.agents.state.windows import NEVER
from tests.soak import seeds
from tests.stream.simulation.broken_gathered import GATHERED_MUTANTS, Partitions
from tests.stream.simulation.run import explain, run

SEEDS = {
    "13 gathered while open": 3,
    "13 named one head later": 2,
    "13 gathered again": 6,
    "13 handed over before the head has won": 18,
    "13 late reports handed over": 3,
    "13 own counts added": 2,
    "13 answered from behind": 185,
    "13 new partition open": 35,
}
"""For each mutant the first seed that notices it, as `python -m tests.stream.mutants` finds it."""


@lru_cache(maxsize=16)
def ran(seed: int):
    return run(seed, make=Partitions)


@pytest.mark.soak
def test_all_invariants_hold_with_several_partitions():
    for seed in seeds(12, soak=2_000):
        assert ran(seed).violated is None, explain(seed, make=Partitions)


def test_panes_are_gathered_and_handed_over():
    heads = [ran(seed).world.official for seed in range(6)]
    assert all(first.gathered > NEVER for first, *_ in heads)
    assert any(other.gathered > NEVER for _, *others in heads for other in others)


def test_every_mutant_has_a_seed():
    assert SEEDS.keys() == GATHERED_MUTANTS.keys()


@pytest.mark.parametrize("name", GATHERED_MUTANTS)
def test_a_rule_taken_away_is_noticed(name: str):
    seed = SEEDS[name]
    assert ran(seed).violated is None
    assert run(seed, make=GATHERED_MUTANTS[name]).violated is not None
