"""What a broker has to permit: the pages' own commands are enough, and what is missing is named."""

import asyncio
from pathlib import Path

import pytest

from ldpstream.agents.broker.shards import declare_addresses
from ldpstream.agents.broker.topics import declare_topics
from tests.broker.pages.acls import grant
from tests.broker.pages.listeners import STRANGER, Secured
from tests.lab import Lab
from tests.stream.cli import invoke, spawn

pytestmark = pytest.mark.broker


async def test_missing_permissions_are_named(secured: Secured, tmp_path: Path) -> None:
    lab = Lab(secured.broker("SASL_PLAINTEXT", user=STRANGER), tmp_path)
    topics, file = lab.collection.topics, str(lab.file)
    async with secured.administrator() as client:
        await declare_topics(client, [lab.collection], replication_factor=1)
        await grant(
            client,
            "kafka-acls.sh --bootstrap-server one:9092 --add --operation Describe --operation Write"
            f" --allow-principal User:{STRANGER} --resource-pattern-type prefixed"
            f" --topic {topics.source} --topic {topics.changelog}",
        )
    missing = [
        f"topic {topics.source}: expected permission to read, got none",
        f"topic {topics.control}: expected permission to read, got none",
        f"topic {topics.changelog}: expected permission to read, got none",
        f"group {lab.config.worker.id}: expected permission to read, got none",
    ]
    checked = await asyncio.to_thread(spawn, "check", "-c", file)
    assert checked.returncode == 1
    assert checked.stderr.decode().splitlines() == missing
    worked = await asyncio.to_thread(spawn, "worker", "-c", file)
    assert (worked.returncode, worked.stdout) == (1, b"")
    (line,) = worked.stderr.decode().splitlines()
    assert line.endswith(f" does not permit it: {'; '.join(missing)}")


async def test_a_missing_permission_to_write_addresses_is_named(
    secured: Secured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers' tokens go to the addresses in this topic, so few may write to it."""
    monkeypatch.setenv("LDPSTREAM_ADVERTISE", "http://127.0.0.1:1")
    lab = Lab(secured.broker("SASL_PLAINTEXT", user=STRANGER), tmp_path)
    topic = lab.config.worker.addresses_topic
    permit = f"kafka-acls.sh --bootstrap-server one:9092 --add --allow-principal User:{STRANGER}"
    async with secured.administrator() as client:
        await declare_topics(client, [lab.collection], replication_factor=1)
        assert not await declare_addresses(client, topic, replication_factor=1)
        topics = f"--topic {lab.collection.topics.source} --topic {lab.collection.topics.changelog}"
        of_workers = "--operation Read --operation Write --operation DescribeConfigs"
        await grant(client, f"{permit} {of_workers} --resource-pattern-type prefixed {topics}")
        await grant(client, f"{permit} --operation Read --topic {topic}")
        await grant(client, f"{permit} --operation Read --group {lab.config.worker.id}")
    missing = f"topic {topic}: expected permission to write, got none"
    checked = await asyncio.to_thread(invoke, "check", "-c", str(lab.file))
    assert (checked.exit_code, checked.stderr) == (1, f"{missing}\n")
    worked = await asyncio.to_thread(spawn, "worker", "-c", str(lab.file))
    assert worked.returncode == 1
    assert worked.stderr.decode().rstrip().endswith(f" does not permit it: {missing}")
    async with secured.administrator() as client:
        await grant(client, f"{permit} --operation Write --topic {topic}")
    checked = await asyncio.to_thread(invoke, "check", "-c", str(lab.file))
    assert (checked.exit_code, checked.stderr) == (0, "")


async def test_missing_topics_that_could_not_be_created_are_named(
    secured: Secured, tmp_path: Path
) -> None:
    lab = Lab(secured.broker("SASL_PLAINTEXT", user=STRANGER), tmp_path)
    topics, file = lab.collection.topics, str(lab.file)

    async def permit_stranger(*operations: str) -> None:
        async with secured.administrator() as client:
            for kind in (
                f"--resource-pattern-type prefixed --topic {topics.source}",
                f"--topic {topics.changelog}",
                f"--group {lab.config.worker.id}",
            ):
                asked = [f"--operation {one}" for one in operations if "group" not in kind]
                await grant(
                    client,
                    "kafka-acls.sh --bootstrap-server one:9092 --add --operation Read "
                    f"{' '.join(asked)} --allow-principal User:{STRANGER} {kind}",
                )

    await permit_stranger("Write")
    checked = await asyncio.to_thread(invoke, "check", "-c", file)
    assert checked.exit_code == 1
    assert [line.partition(": ")[0] for line in checked.stderr.splitlines()] == [
        f"topic {name} cannot be created" for name in sorted(topics.names())
    ]
    await permit_stranger("Write", "Create")
    checked = await asyncio.to_thread(invoke, "check", "-c", file)
    assert (checked.exit_code, checked.stderr) == (0, "")
    # Nothing has been created by asking.
    assert checked.stdout.count("a worker creates it") == len(list(topics.names()))
