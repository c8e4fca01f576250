"""The store on disk: what a restart finds, and that no crash makes it claim too much."""

from pathlib import Path

import pytest

import ldpstream.agents.engine.rocks_store as rocks_store
from ldpstream.agents.engine.rocks_store import RocksDatabase, RocksStore
from ldpstream.agents.state.replica import Replica
from tests.soak import CHECK, seeds
from tests.stream.harness import HOUR_MS, frame
from tests.stream.rocks import CONTEXT, OURS, filled, read, shown, stored
from tests.stream.simulation.run import explain, run
from tests.stream.simulation.stored import Ahead, StoredWorker, Torn, stored_world


def test_a_restart_continues_from_the_last_evaluation(database: RocksDatabase):
    cluster = filled()
    stored(database, cluster)
    end = len(cluster.log[0])
    again = Replica(CONTEXT, 0)
    assert again.resume(RocksStore(database, OURS)) == end
    # Nothing is shown before the log is known to be no shorter than it was.
    assert again.head is None
    assert not again.cells
    assert not again.all_panes()
    again.read([], position=end, end=end)
    assert shown(again) == shown(cluster.replicas[0])
    assert any(
        cell.kept_value.size_bytes > len(cell.kept_value.start) for cell in again.cells.values()
    )


def test_records_that_were_read_and_not_evaluated_are_read_again(
    database: RocksDatabase, monkeypatch: pytest.MonkeyPatch
):
    # Values are written one by one, before anything points to them.
    monkeypatch.setattr(rocks_store, "_BATCH_BYTES", 1)
    cluster = filled()
    replica = stored(database, cluster)
    before = len(cluster.log[0])
    cluster.produce(0, frame(*((3 * HOUR_MS, s) for s in range(60)), spec=CONTEXT.spec))
    cluster.step(HOUR_MS)
    replica.read(cluster.log[0][before:-1], position=len(cluster.log[0]) - 1, end=99)
    assert list(database.scan(b"s"))
    values = len(list(database.scan(b"v")))
    again = Replica(CONTEXT, 0)
    assert again.resume(RocksStore(database, OURS)) == before
    assert not list(database.scan(b"s"))
    assert len(list(database.scan(b"v"))) < values
    read(again, cluster, start=before)
    assert shown(again) == shown(cluster.replicas[0])


def test_expired_and_swept_records_leave_the_store(database: RocksDatabase):
    cluster = filled(hours=40)
    replica = stored(database, cluster)
    live = len(
        [c for c in replica.cells.values() if c.kept_value.size_bytes > len(c.kept_value.start)]
    )
    assert len(list(database.scan(b"v"))) == live < 20
    begun = len(cluster.log[0])
    cluster.sweep(0)
    read(replica, cluster, start=begun)
    assert not replica.dead()
    # The winning head is stored with the position.
    assert len(list(database.scan(b"m"))) == len(replica.cells) < 30


@pytest.mark.soak
def test_all_invariants_hold_with_stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    # Small batches, so that values are written before their evaluation.
    monkeypatch.setattr(rocks_store, "_BATCH_BYTES", 40)
    resumed = 0
    begin = StoredWorker.__init__

    def count(self: StoredWorker, *arguments: object) -> None:
        nonlocal resumed
        begin(self, *arguments)
        resumed += any(reader.position for reader in self.readers)

    monkeypatch.setattr(StoredWorker, "__init__", count)
    with stored_world(tmp_path) as make:
        for seed in seeds(25, soak=500):
            assert run(seed, make=make).violated is None, explain(seed, make=make)
    if not CHECK:
        assert resumed > 25


@pytest.mark.parametrize("broken", [Ahead, Torn])
def test_a_store_that_claims_too_much_is_noticed(broken: type[RocksStore], tmp_path: Path):
    with stored_world(tmp_path, store_class=broken) as make:
        assert run(3, make=make).violated is not None
