"""The simulation through the product's intake; its long form is `simulate --intake`."""

import pytest

from tests.soak import CHECK, seeds
from tests.stream.simulation.broken_intake import INTAKE_MUTANTS
from tests.stream.simulation.intake import Harsh, IntakeWorld
from tests.stream.simulation.run import explain, run

SEEDS = {
    "intake: gaps trusted": 115,
    "intake: repeats taken": 35,
    "intake: arrives when taken": 19,
    "intake: lost batches are waited for": 578,
    "intake: no commit after a load": 223,
    "idle: by silence": 117,
    "idle: by any delivery": 195,
    "idle: one probe": 195,
    "idle: an old series": 117,
    "idle: nothing breaks a series": 83,
    "idle: ends forgotten": 195,
    "idle: not with refused messages": 1,
    "idle: not with messages of other specs": 4,
    "idle: also with reports that count": 83,
}
"""For each mutant a seed that notices it, as `python -m tests.stream.mutants` finds it."""


@pytest.mark.soak
@pytest.mark.parametrize("make", [IntakeWorld, Harsh])
def test_all_invariants_hold(make: type[IntakeWorld]) -> None:
    worlds = []
    for seed in seeds(20, soak=2_000):
        done = run(seed, make=make)
        assert done.violated is None, explain(seed, make=make)
        worlds.append(done.world)
    if not CHECK:
        assert sum(world.idle for world in worlds) > 200


def test_every_mutant_has_a_seed() -> None:
    assert SEEDS.keys() == INTAKE_MUTANTS.keys()


@pytest.mark.parametrize("name", INTAKE_MUTANTS)
def test_a_rule_taken_away_is_noticed(name: str) -> None:
    make = INTAKE_MUTANTS[name]
    whole = Harsh if issubclass(make, Harsh) else IntakeWorld
    assert run(SEEDS[name], make=whole).violated is None
    assert run(SEEDS[name], make=make).violated is not None


def test_records_read_late_and_dated_early_become_final_too() -> None:
    assert run(9_304_094, make=Harsh).violated is None
