"""The short form of the simulation: `python -m tests.stream.simulate` is the long one."""

from functools import lru_cache

import pytest

from tests.soak import seeds
from tests.stream.simulation.broken import MUTANTS
from tests.stream.simulation.run import explain, run, shrink

SEEDS = {
    "1 keys overwritten": 18,
    "2 last head wins": 12,
    "3 no lineage": 9,
    "3 lineage of one epoch": 3,
    "4 head without acknowledgements": 37,
    "4 head without the copies' acknowledgements": 35,
    "4 failures ignored": 34,
    "4 no reading back": 15,
    "4 retry in the same epoch": 67,
    "5 view anywhere": 345,
    "6 same epoch": 5,
    "6 early commit": 0,
    "6 load at the committed offset": 3,
    "7 closed but not said": 0,
    "7 lost but not counted": 5,
    "7 event times beyond arrival": 5,
    "7 the worker's clock while catching up": 6,
    "8 finals from memory": 4,
    "8 publish first": 18,
    "8 mark first": 4,
    "8 mark what was not sent": 16,
    "8 expire alone": 1,
    "8 new partition open": 152,
    "8 new partition at once": 2836,
    "8 partitions forgotten": 10727,
    "9 no sweep": 0,
    "9 sweep of the undecided": 12,
    "idempotence: duplicates and compaction": 676,
}
"""For each mutant the first seed that notices it, as `python -m tests.stream.mutants` finds it."""


ran = lru_cache(maxsize=64)(run)


@pytest.mark.soak
@pytest.mark.parametrize("first", [0, 10_000, 20_000])
def test_all_invariants_hold(first: int):
    for seed in seeds(20, soak=2_000, first=first):
        assert ran(seed).violated is None, explain(seed)


@pytest.mark.slow
def test_runs_reach_every_outcome():
    worlds = [ran(seed).world for seed in range(40)]
    outcomes = {
        outcome for world in worlds for counter in world.checks.outcomes for outcome in counter
    }
    assert outcomes >= {"counted", "late", "future", "range", "fingerprint", "undecodable", "lost"}
    assert max(len(world.checks.published) for world in worlds) > 5
    assert max(head.seq for world in worlds for head in world.official) > 20
    assert sum(world.times.seen for world in worlds) > 100


def test_every_mutant_has_a_seed():
    assert SEEDS.keys() == MUTANTS.keys()


@pytest.mark.parametrize("name", MUTANTS)
def test_a_rule_taken_away_is_noticed(name: str):
    seed = SEEDS[name]
    assert ran(seed).violated is None
    assert run(seed, make=MUTANTS[name]).violated is not None


def test_a_schedule_is_shortened_to_one_that_still_fails():
    make = MUTANTS["6 early commit"]
    schedule = shrink(0, make=make)
    assert len(schedule) < 5
    assert (run(0, schedule, make=make).violated or "").startswith("(6)")
    assert "shortest schedule" in explain(0, make=make)


def test_a_schedule_at_which_the_code_fails_is_not_a_violation():
    class Stopping(MUTANTS["6 early commit"]):
        def quiesce(self) -> None:
            if not self.trace:
                raise KeyError
            super().quiesce()

    assert len(shrink(0, make=Stopping)) > 0
