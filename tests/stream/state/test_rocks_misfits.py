"""A store on disk of another changelog, or a damaged one: it is noticed, rebuilt or refused."""

import logging
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import ldpstream.agents.engine.rocks_store as rocks_store
from ldpstream.agents.engine.rocks_store import (
    RocksDatabase,
    RocksStore,
    StoredReplica,
    drop_unused_replicas,
)
from ldpstream.agents.engine.stores import Stores, why_no_store
from ldpstream.agents.state.cell_store import StoreError
from ldpstream.agents.state.encoding import state_prefix
from ldpstream.agents.state.replica import Replica
from ldpstream.agents.state.windows import WindowSpec
from tests.stream.cli import invoke
from tests.stream.harness import HOUR_MS, make_context
from tests.stream.rocks import (
    CONTEXT,
    OURS,
    STATE,
    everything,
    filled,
    read,
    rocks_config,
    shown,
    stored,
)


def test_another_topic_of_the_same_name_is_noticed(
    database: RocksDatabase, caplog: pytest.LogCaptureFixture
):
    stored(database, filled())
    other = StoredReplica(topic="changelog", partition=0, topic_id="bb", state=STATE)
    assert Replica(CONTEXT, 0).resume(RocksStore(database, other)) == 0
    (record,) = caplog.records
    assert record.getMessage() == (
        "the state of changelog[0] is read from the changelog's beginning: the stored one is of "
        "another topic with this name"
    )
    assert everything(database) == [b"format"]


def test_without_topic_ids_a_store_is_not_resumed(
    database: RocksDatabase, caplog: pytest.LogCaptureFixture
):
    unknown = StoredReplica(topic="changelog", partition=0, topic_id="", state=STATE)
    replica = Replica(CONTEXT, 0)
    replica.resume(RocksStore(database, unknown))
    read(replica, filled())
    assert Replica(CONTEXT, 0).resume(RocksStore(database, unknown)) == 0
    assert "topics of this broker have no ids" in caplog.text


def test_states_that_belong_to_no_collection_are_dropped(
    database: RocksDatabase, caplog: pytest.LogCaptureFixture
):
    cluster = filled()
    stored(database, cluster)
    drop_unused_replicas(database, [OURS])
    assert list(database.scan(b"m"))
    longer = make_context(WindowSpec(size_ms=2 * HOUR_MS, hop_ms=2 * HOUR_MS), spec=CONTEXT.spec)
    state = state_prefix(longer).hex()
    drop_unused_replicas(
        database, [StoredReplica(topic="changelog", partition=0, topic_id="aa", state=state)]
    )
    assert "the stored state of changelog[0] is dropped" in caplog.text
    assert everything(database) == [b"format"]


def test_a_store_of_another_format_begins_again(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    database = RocksDatabase(tmp_path / "rocks")
    stored(database, filled())
    database.write_pairs([(b"format", b"ldpstream 0")])
    database.close()
    database = RocksDatabase(tmp_path / "rocks")
    assert "it has format b'ldpstream 0', and this release writes" in caplog.text
    assert everything(database) == [b"format"]
    database.close()


def test_a_damaged_database_begins_again(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    database = RocksDatabase(tmp_path / "rocks")
    stored(database, filled())
    database.close()
    (tmp_path / "rocks" / "CURRENT").write_text("MANIFEST")
    database = RocksDatabase(tmp_path / "rocks")
    assert "is damaged, and rebuilt from the changelogs" in caplog.text
    assert everything(database) == [b"format"]
    database.close()


def test_a_value_that_went_missing_is_an_error_by_name(database: RocksDatabase):
    replica = stored(database, filled())
    for key, _ in list(database.scan(b"v")):
        batch = rocks_store.Batch(raw_mode=True)
        batch.delete(key)
        database.write(batch)
    with pytest.raises(StoreError, match=r"lacks a value of changelog\[0\]"):
        [replica.value(name) for name in replica.cells]


def test_a_store_that_does_not_add_up_is_not_used(
    database: RocksDatabase, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.WARNING)
    cluster = filled()
    stored(database, cluster)
    key = next(key for key, stored in database.scan(b"m") if stored)
    database.write_pairs([(key, b"\x04\0\0\0\x07bad")])
    database.close()
    worker = rocks_config(tmp_path).worker
    (tmp_path / "data").mkdir()
    (tmp_path / "rocks").rename(tmp_path / "data" / "rocksdb")
    topics = SimpleNamespace(changelog="changelog")
    replica = Replica(CONTEXT, 0)
    collection = SimpleNamespace(
        config=SimpleNamespace(topics=topics), context=CONTEXT, replicas=[replica]
    )
    stores = Stores(worker)
    assert stores.open([collection], lambda _: b"\xaa") == {}
    assert "the stored one cannot be used: changelog" in caplog.text
    read(replica, cluster)
    assert shown(replica) == shown(cluster.replicas[0])
    stores.close()


def test_two_workers_on_one_folder_are_refused(database: RocksDatabase, tmp_path: Path):
    code = (
        "import sys; from pathlib import Path; "
        "from ldpstream.agents.engine.rocks_store import RocksDatabase; "
        "RocksDatabase(Path(sys.argv[1]))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "rocks")]
    said = subprocess.run(command, capture_output=True, text=True).stderr
    assert f"{tmp_path}/rocks is in use by another worker: give each" in said


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot create"):
        RocksDatabase(tmp_path / "file" / "rocks")


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ldpstream.agents.engine.stores.find_spec", lambda _: None)
    worker = rocks_config(tmp_path).worker
    assert "pip install 'ldpstream[rocksdb]'" in (why_no_store(worker) or "")
    with pytest.raises(StoreError, match="pip install"):
        Stores(worker).open([], lambda _: b"")
    result = invoke("worker", "-c", str(tmp_path / "ldpstream.toml"))
    assert result.exit_code == 2
    assert "pip install 'ldpstream[rocksdb]'" in result.stderr
