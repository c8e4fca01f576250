"""The simulation with packed messages as input; its long form is `... simulate --input frames`."""

from pathlib import Path

import pytest

from ldpstream.agents.state.packed import REASONS
from tests.soak import CHECK, seeds
from tests.stream.simulation.packed import PACKED_MUTANTS, PackedWorker, PackedWorld
from tests.stream.simulation.run import explain, run
from tests.stream.simulation.stored import StoredWorker, stored_world


@pytest.mark.soak
def test_all_invariants_hold_and_runs_reach_every_case():
    seen: set[str] = set()
    for seed in seeds(30, soak=1_000):
        done = run(seed, make=PackedWorld)
        assert done.violated is None, explain(seed, make=PackedWorld)
        assert isinstance(done.world, PackedWorld)
        seen |= done.world.seen
    if not CHECK:
        assert seen >= {"taken", "repeat", "hole", *REASONS}


@pytest.mark.parametrize("name", PACKED_MUTANTS)
def test_a_rule_taken_away_is_noticed(name: str):
    assert any(run(seed, make=PACKED_MUTANTS[name]).violated for seed in range(20))


@pytest.mark.soak
def test_all_invariants_hold_with_a_store_on_disk(tmp_path: Path):
    class Stored(StoredWorker, PackedWorker):
        """A worker that goes on from its store, and reads packed messages."""

    with stored_world(tmp_path) as stored:
        make = type("World", (stored, PackedWorld), {"worker_class": Stored})
        for seed in seeds(8, soak=200, first=100):
            assert run(seed, make=make).violated is None, explain(seed, make=make)
