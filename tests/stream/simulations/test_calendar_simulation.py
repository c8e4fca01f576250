"""The simulation with windows of a calendar, whose days are of different lengths."""

import pytest

from tests.soak import seeds
from tests.stream.simulation.run import explain, run
from tests.stream.simulation.uneven import UNEVEN_MUTANTS, CuriousUnevenWorld, UnevenWorld
from tests.stream.simulation.world import World

SEEDS = {"calendar: days close by their usual length": 49}
"""For each mutant the first seed that notices it, as `python -m tests.stream.mutants` finds it."""


@pytest.mark.soak
@pytest.mark.parametrize("make", [UnevenWorld, CuriousUnevenWorld])
def test_all_invariants_hold_with_days_of_different_lengths(make: type[World]):
    for seed in seeds(12, soak=2_000):
        assert run(seed, make=make).violated is None, explain(seed, make=make)


def test_every_mutant_has_a_seed():
    assert SEEDS.keys() == UNEVEN_MUTANTS.keys()


@pytest.mark.parametrize("name", UNEVEN_MUTANTS)
def test_lengths_in_place_of_the_calendar_are_noticed(name: str):
    seed = SEEDS[name]
    assert run(seed, make=UnevenWorld).violated is None
    assert run(seed, make=UNEVEN_MUTANTS[name]).violated is not None
