"""The store on disk: what a restart finds, what is noticed and rebuilt, what is refused."""

import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

import ldpstream.agents.stores.rocks_store as rocks_store
from ldpstream.agents.config import Config, load_config
from ldpstream.agents.state.cell_store import StoreError
from ldpstream.agents.state.records import state_prefix
from ldpstream.agents.state.tail import Tail
from ldpstream.agents.state.windows import WindowSpec
from ldpstream.agents.stores.choice import Stores, why_no_store
from ldpstream.agents.stores.rocks import RocksDatabase
from ldpstream.agents.stores.rocks_store import RocksStore, StoredTail, drop_others
from tests.stream.cli import invoke
from tests.stream.harness import HOUR_MS, Cluster, frame, make_context, make_spec
from tests.stream.simulation.run import explain, run
from tests.stream.simulation.stored import Ahead, StoredWorker, Torn, stored_world

CONTEXT = make_context(
    WindowSpec(size_ms=HOUR_MS, hop_ms=HOUR_MS, retention_ms=3 * HOUR_MS), spec=make_spec(size=80)
)
STATE = state_prefix(CONTEXT).hex()
OURS = StoredTail(topic="changelog", partition=0, topic_id="aa", state=STATE)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[RocksDatabase]:
    database = RocksDatabase(tmp_path / "rocks")
    yield database
    database.close()


def filled(hours: int = 3) -> Cluster:
    """A changelog with a pane an hour, of many values each."""
    cluster = Cluster(CONTEXT)
    for hour in range(hours):
        cluster.produce(0, frame(*((hour * HOUR_MS, s) for s in range(60)), spec=CONTEXT.spec))
        cluster.step(HOUR_MS)
    cluster.steps(4)
    return cluster


def read(tail: Tail, cluster: Cluster, *, start: int = 0) -> None:
    log = cluster.log[0][start:]
    tail.read(log, position=len(cluster.log[0]), end=len(cluster.log[0]))


def shown(tail: Tail) -> object:
    values = {name: (cell.key, cell.value) for name, cell in tail.cells.items()}
    return tail.head, values, set(tail.dead()), tail.all_panes()


def stored(database: RocksDatabase, cluster: Cluster) -> Tail:
    tail = Tail(CONTEXT, 0)
    tail.resume(RocksStore(database, OURS))
    read(tail, cluster)
    return tail


def configured(folder: Path) -> Config:
    file = folder / "ldpstream.toml"
    file.write_text("""[worker]
store = "rocksdb"
[collection.c]
mechanism = "binary"
epsilon = [1.0, 1.0]
domain = { values = ["no", "yes"] }
""")
    return load_config(file, environment={})


def everything(database: RocksDatabase) -> list[bytes]:
    return [key for kind in (b"f", b"m", b"p", b"s", b"v") for key, _ in database.scan(kind)]


# --- what a restart finds -------------------------------------------------------------------------


def test_a_restart_goes_on_where_the_last_evaluation_was(database: RocksDatabase):
    cluster = filled()
    stored(database, cluster)
    end = len(cluster.log[0])
    again = Tail(CONTEXT, 0)
    assert again.resume(RocksStore(database, OURS)) == end
    # Nothing is shown before the end of the log is known to be where it was.
    assert again.head is None
    assert not again.cells
    assert not again.all_panes()
    again.read([], position=end, end=end)
    assert shown(again) == shown(cluster.tails[0])
    assert any(cell.held.size_bytes > len(cell.held.start) for cell in again.cells.values())


def test_what_was_read_and_not_evaluated_is_read_again(
    database: RocksDatabase, monkeypatch: pytest.MonkeyPatch
):
    # Every value is written at once, before anything points to it.
    monkeypatch.setattr(rocks_store, "_BATCH_BYTES", 1)
    cluster = filled()
    tail = stored(database, cluster)
    before = len(cluster.log[0])
    cluster.produce(0, frame(*((3 * HOUR_MS, s) for s in range(60)), spec=CONTEXT.spec))
    cluster.step(HOUR_MS)
    tail.read(cluster.log[0][before:-1], position=len(cluster.log[0]) - 1, end=99)
    assert list(database.scan(b"s"))
    values = len(list(database.scan(b"v")))
    again = Tail(CONTEXT, 0)
    assert again.resume(RocksStore(database, OURS)) == before
    assert not list(database.scan(b"s"))
    assert len(list(database.scan(b"v"))) < values
    read(again, cluster, start=before)
    assert shown(again) == shown(cluster.tails[0])


def test_what_expired_and_was_swept_leaves_the_store(database: RocksDatabase):
    cluster = filled(hours=40)
    tail = stored(database, cluster)
    live = len([c for c in tail.cells.values() if c.held.size_bytes > len(c.held.start)])
    assert len(list(database.scan(b"v"))) == live < 20
    begun = len(cluster.log[0])
    cluster.sweep(0)
    read(tail, cluster, start=begun)
    assert not tail.dead()
    # The winning head is in the point.
    assert len(list(database.scan(b"m"))) == len(tail.cells) < 30


# --- what does not fit ----------------------------------------------------------------------------


def test_another_topic_of_the_name_is_noticed(
    database: RocksDatabase, caplog: pytest.LogCaptureFixture
):
    stored(database, filled())
    other = StoredTail(topic="changelog", partition=0, topic_id="bb", state=STATE)
    assert Tail(CONTEXT, 0).resume(RocksStore(database, other)) == 0
    (record,) = caplog.records
    assert record.getMessage() == (
        "the state of changelog[0] is read from the changelog's beginning: the stored one is of "
        "another topic of this name"
    )
    assert everything(database) == [b"format"]


def test_a_broker_without_topic_ids_gives_nothing_to_go_on_from(
    database: RocksDatabase, caplog: pytest.LogCaptureFixture
):
    unknown = StoredTail(topic="changelog", partition=0, topic_id="", state=STATE)
    tail = Tail(CONTEXT, 0)
    tail.resume(RocksStore(database, unknown))
    read(tail, filled())
    assert Tail(CONTEXT, 0).resume(RocksStore(database, unknown)) == 0
    assert "the broker gives topics no ids" in caplog.text


def test_what_belongs_to_no_collection_any_more_is_dropped(
    database: RocksDatabase, caplog: pytest.LogCaptureFixture
):
    cluster = filled()
    stored(database, cluster)
    drop_others(database, [OURS])
    assert list(database.scan(b"m"))
    longer = make_context(WindowSpec(size_ms=2 * HOUR_MS, hop_ms=2 * HOUR_MS), spec=CONTEXT.spec)
    state = state_prefix(longer).hex()
    drop_others(database, [StoredTail(topic="changelog", partition=0, topic_id="aa", state=state)])
    assert "the stored state of changelog[0] is dropped" in caplog.text
    assert everything(database) == [b"format"]


def test_another_format_begins_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    database = RocksDatabase(tmp_path / "rocks")
    stored(database, filled())
    database.write_pairs([(b"format", b"ldpstream 0")])
    database.close()
    database = RocksDatabase(tmp_path / "rocks")
    assert "it is of format b'ldpstream 0', and this release writes" in caplog.text
    assert everything(database) == [b"format"]
    database.close()


def test_a_damaged_database_begins_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    database = RocksDatabase(tmp_path / "rocks")
    stored(database, filled())
    database.close()
    (tmp_path / "rocks" / "CURRENT").write_text("MANIFEST")
    database = RocksDatabase(tmp_path / "rocks")
    assert "is damaged and begins anew from the changelogs" in caplog.text
    assert everything(database) == [b"format"]
    database.close()


def test_a_value_that_went_missing_is_an_error_by_name(database: RocksDatabase):
    tail = stored(database, filled())
    for key, _ in list(database.scan(b"v")):
        batch = rocks_store.Batch(raw_mode=True)
        batch.delete(key)
        database.write(batch)
    with pytest.raises(StoreError, match=r"lacks a value of changelog\[0\]"):
        [cell.value for cell in tail.cells.values()]


def test_a_store_that_does_not_add_up_is_left(
    database: RocksDatabase, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.WARNING)
    cluster = filled()
    stored(database, cluster)
    key = next(key for key, stored in database.scan(b"m") if stored)
    database.write_pairs([(key, b"\x04\0\0\0\x07bad")])
    database.close()
    worker = configured(tmp_path).worker
    (tmp_path / "data").mkdir()
    (tmp_path / "rocks").rename(tmp_path / "data" / "rocksdb")
    topics = SimpleNamespace(changelog="changelog")
    tail = Tail(CONTEXT, 0)
    collection = SimpleNamespace(
        config=SimpleNamespace(topics=topics), context=CONTEXT, tails=[tail]
    )
    stores = Stores(worker)
    assert stores.open([collection], lambda _: b"\xaa") == {}
    assert "the stored one cannot be used: changelog" in caplog.text
    read(tail, cluster)
    assert shown(tail) == shown(cluster.tails[0])
    stores.close()


# --- what is refused ------------------------------------------------------------------------------


def test_two_workers_on_one_folder_are_refused(database: RocksDatabase, tmp_path: Path):
    code = (
        "import sys; from pathlib import Path; "
        "from ldpstream.agents.stores.rocks import RocksDatabase; "
        "RocksDatabase(Path(sys.argv[1]))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "rocks")]
    said = subprocess.run(command, capture_output=True, text=True).stderr
    assert f"{tmp_path}/rocks is in use by another worker: each needs a folder" in said


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be"):
        RocksDatabase(tmp_path / "file" / "rocks")


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ldpstream.agents.stores.choice.find_spec", lambda _: None)
    worker = configured(tmp_path).worker
    assert "pip install 'ldpstream[rocksdb]'" in (why_no_store(worker) or "")
    with pytest.raises(StoreError, match="pip install"):
        Stores(worker).open([], lambda _: b"")
    result = invoke("worker", "-c", str(tmp_path / "ldpstream.toml"))
    assert result.exit_code == 2
    assert "pip install 'ldpstream[rocksdb]'" in result.stderr


# --- crashes --------------------------------------------------------------------------------------


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
        for seed in range(100):
            assert run(seed, make=make).violated is None, explain(seed, make=make)
    assert resumed > 100


@pytest.mark.parametrize("broken", [Ahead, Torn])
def test_a_store_that_tells_too_much_is_noticed(broken: type[RocksStore], tmp_path: Path):
    with stored_world(tmp_path, store_class=broken) as make:
        assert run(3, make=make).violated is not None
