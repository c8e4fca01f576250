"""The collections of a shard, its group, and the addresses of other workers."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ldpstream.agents.broker import shards as addresses
from ldpstream.agents.broker.shards import MISSED_RENEWALS, Shards
from ldpstream.agents.config import Config, ConfigError, Shard, read_config
from ldpstream.agents.config.worker import is_group
from ldpstream.agents.engine.metrics import Metrics
from ldpstream.agents.engine.pipeline import Pipeline
from tests.stream.cli import invoke
from tests.stream.serving import RIDES

NAMES = [f"city-{number}" for number in range(200)]
OWN, OTHER = "http://one:6066", "http://two:6066"
SECOND = b'{"shard": "2/2"}'


def configured(*names: str, **worker: object) -> Config:
    tables = {"worker": worker, "collection": dict.fromkeys(names, RIDES)}
    return read_config(tables, base=Path(), environment={})


def shards(own: str = "1/2", address: str = OWN) -> Shards:
    """Return what a worker knows; of two shards `rides` is in the first, `city` in the second."""
    return Shards(Shard.parse(own), address, configured("rides", "city").collections)


def test_the_hash_is_the_documented_one() -> None:
    # printf rides | sha256sum: 8 bytes modulo 4, plus 1.
    assert [str(Shard(1, 4).of(name)) for name in ("rides", "modes", "trips", "city")] == [
        "1/4", "2/4", "3/4", "4/4",
    ]  # fmt: skip


@pytest.mark.parametrize("total", [1, 2, 3, 5])
def test_twice_as_many_shards_split_each_in_two(total: int) -> None:
    for number in range(1, total + 1):
        held = {name for name in NAMES if Shard(number, total).holds(name)}
        halves = [Shard(number, 2 * total), Shard(number + total, 2 * total)]
        parts = [{name for name in NAMES if half.holds(name)} for half in halves]
        assert (parts[0] | parts[1], parts[0] & parts[1]) == (held, set())


def test_a_group_is_named_by_its_shard_and_a_single_one_by_the_id() -> None:
    assert Shard().group("ldpstream") == "ldpstream"
    assert Shard(2, 4).group("ldpstream") == "ldpstream.2-of-4"
    ours = ["ldpstream", "ldpstream.2-of-4"]
    others = ["ldpstream.other", "ldpstream.0-of-4", "ldpstream2", "x.ldpstream.2-of-4", "2-of-4"]
    assert [one for one in ours + others if is_group(one, "ldpstream")] == ours


@pytest.mark.parametrize("text", ["0/2", "3/2", "2", "1/0", "1/99999", "a/b", "01/2", " 1/2"])
def test_malformed_shards_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected SHARD/SHARDS, such as 2/4"):
        Shard.parse(text)


def test_a_worker_holds_replicas_of_its_own_shard_alone() -> None:
    config = configured("rides", "city", "trips", "modes").of_shard(Shard(2, 2))
    channels: Any = dict.fromkeys(config.collections)
    group: Any = SimpleNamespace()
    pipeline = Pipeline(config, group=group, channels=channels, metrics=Metrics())
    assert set(pipeline.collections) == {"city", "modes"}
    assert config.group == "ldpstream.2-of-2"


def test_addresses_are_checked_where_they_are_configured() -> None:
    for bad in ("two:6066", "http://two/x", "ftp://two", "http://user@two", "http://two:6066/"):
        with pytest.raises(ConfigError, match=r"worker\.advertise: expected an address"):
            configured("city", advertise=bad)
    given = {"LDPSTREAM_ADVERTISE": "nonsense"}
    with pytest.raises(ConfigError, match="LDPSTREAM_ADVERTISE: expected an address"):
        read_config({"collection": {"city": RIDES}}, base=Path(), environment=given)
    city = RIDES | {"topic": "ldpstream-workers"}
    taken = {"worker": {"advertise": OWN}, "collection": {"city": city}}
    with pytest.raises(ConfigError, match=r"collection\.city\.topic: expected topics of its own"):
        read_config(taken, base=Path(), environment={})


def test_an_instance_has_a_name_which_a_variable_may_give() -> None:
    tables: dict[str, Any] = {"worker": {"instance": "one"}, "collection": {"city": RIDES}}
    given = {"LDPSTREAM_INSTANCE": "two"}
    for environment, instance in (({}, "one"), (given, "two")):
        config = read_config(tables, base=Path(), environment=environment)
        assert config.worker.instance == instance
    given = {"LDPSTREAM_INSTANCE": "two/2"}
    with pytest.raises(ConfigError, match="LDPSTREAM_INSTANCE: expected letters"):
        read_config(tables, base=Path(), environment=given)


@pytest.mark.parametrize("command", ["worker", "check"])
def test_a_shard_needs_an_address(command: str, tmp_path: Path) -> None:
    file = tmp_path / "some.toml"
    file.write_text('[collection.a]\nmechanism = "binary"\nepsilon = [1, 1]\ndomain = {size = 2}\n')
    done = invoke(command, "-c", str(file), "--shard", "1/2")
    assert (done.exit_code, "worker.advertise: expected this worker's address" in done.output) == (
        2,
        True,
    )
    done = invoke(command, "-c", str(file), "--shard", "3/2")
    assert (done.exit_code, "such as 2/4, got '3/2'" in done.output) == (2, True)


def test_addresses_come_go_and_age() -> None:
    known = shards()
    known.read(OTHER.encode(), SECOND)
    assert known.addresses("city") == [OTHER]
    assert known.addresses("rides") == []
    assert known.remote_collections()["city"].ready
    known.read(OTHER.encode(), None)
    assert known.addresses("city") == []
    assert (
        known.remote_collections()["city"].problem == "city: shard 2/2 has no worker that answers"
    )
    # An address expires once this worker has renewed its own several times, and the other has not.
    known.read(OTHER.encode(), SECOND)
    for _ in range(MISSED_RENEWALS - 1):
        known.read(*known.record())
    assert known.addresses("city") == [OTHER]
    known.read(OTHER.encode(), SECOND)
    for _ in range(MISSED_RENEWALS):
        assert known.addresses("city") == [OTHER]
        known.read(*known.record())
    assert known.addresses("city") == []


def test_workers_of_other_numbers_of_shards_are_asked_too() -> None:
    known = shards("1/2")
    known.read(b"http://two:1", b'{"shard": "4/4"}')
    known.read(b"http://two:2", b'{"shard": "2/4"}')
    assert known.addresses("city") == ["http://two:1"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"http://two/elsewhere", SECOND),
        (b"http://user:password@two:6066", SECOND),
        (b"file:///etc/passwd", SECOND),
        (b"\xff", SECOND),
        (b"", SECOND),
        (None, SECOND),
        (b"http://two:6066", b"2/2"),
        (b"http://two:6066", b'{"shard": 2}'),
        (b"http://two:6066", b"\xff"),
        (b"http://two:6066", b"[]"),
    ],
)
def test_records_that_are_no_addresses_are_left_out(key: bytes | None, value: bytes) -> None:
    known = shards()
    known.read(key, value)
    assert known.addresses("city") == []


def test_a_token_never_goes_from_https_to_http() -> None:
    known = shards(address="https://one:6066")
    known.read(OTHER.encode(), SECOND)
    assert known.addresses("city") == []
    known.read(b"https://two:6066", SECOND)
    assert known.addresses("city") == ["https://two:6066"]
    plain = shards(address="http://one:6066")
    plain.read(b"https://two:6066", SECOND)
    assert plain.addresses("city") == ["https://two:6066"]


async def test_an_address_is_announced_once_ready_and_deleted_on_leaving(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(addresses, "_LOOK_SECONDS", 0.001)
    monkeypatch.setattr(addresses, "RENEW_SECONDS", 0.001)
    sent: list[tuple[bytes, bytes | None]] = []
    stop, ready = asyncio.Event(), asyncio.Event()

    async def send(key: bytes, value: bytes | None) -> None:
        sent.append((key, value))
        assert ready.is_set()
        if len(sent) == 3:
            stop.set()

    telling = asyncio.create_task(addresses._publish_address(send, shards(), stop, ready.is_set))
    await asyncio.sleep(0.01)
    ready.set()
    await telling
    record = shards().record()
    assert sent == [record, record, record, (record[0], None)]
