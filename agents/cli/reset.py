"""`ldpstream reset`: delete a collection's state."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any, Final

import click
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import UnknownTopicOrPartitionError, for_code

from ldpstream.agents.config import CollectionConfig, Config
from ldpstream.agents.kafka.groups import count_members, worker_groups
from ldpstream.agents.kafka.metadata import describe
from ldpstream.agents.terminal import broker
from ldpstream.agents.terminal.common import config_option, confirm, load_collection
from ldpstream.agents.terminal.errors import Failed

_PATIENCE_SECONDS: Final = 30.0


@click.command()
@config_option
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.argument("name")
def reset(config_file: str, name: str, *, yes: bool) -> None:
    """Delete the state of a collection, after its source topic was created again.

    Stop the workers and packers first. All windows, counters, orders to close and packed messages
    are deleted; the next worker counts the source topic from its beginning. Published estimates
    and copies of late and rejected reports stay in their topics.
    """
    config, collection = load_collection(config_file, name)
    if not yes:
        confirm(
            f"Delete all state of {name}? Workers then count {collection.topics.source} from its "
            "beginning."
        )
    deleted = broker.run(_reset(config, collection), config.kafka, config_file)
    if deleted:
        click.echo(f"{name} starts over: deleted {' and '.join(deleted)}")
    else:
        click.echo(f"{name} had no state")


async def _reset(config: Config, collection: CollectionConfig) -> Sequence[str]:
    # An order to close names offsets of the old source: it must not apply to the new one.
    topics = collection.topics
    names = [topics.changelog, topics.control]
    async with broker.admin(config.kafka) as admin:
        groups = dict.fromkeys(await worker_groups(admin, config.worker.id), "workers")
        if topics.frames is not None:
            # On a broker without topic ids nothing tells that they were packed from the old source.
            names.append(topics.frames)
            groups[config.worker.pack_group] = "packers"
        for group_id, who in groups.items():
            members = await count_members(admin, group_id)
            if members:
                raise Failed(
                    f"nothing was changed: the group {group_id} has {members} running; stop "
                    f"all {who} first (the group forgets a killed one after some seconds)"
                )
        present = [name for name in names if name in await describe(admin, names)]
        if present:
            await _delete(admin, present)
    return present


async def _delete(admin: AIOKafkaAdminClient, names: Sequence[str]) -> None:
    response: Any = await admin.delete_topics(list(names))
    for name, code in response.topic_error_codes:
        if code and code != UnknownTopicOrPartitionError.errno:
            raise for_code(code)(f"topic {name}")
    # A deletion is acknowledged before it is done, and until then the name is taken.
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while await describe(admin, names):
        if time.monotonic() > deadline:
            raise Failed(f"the broker still shows {names[0]} after {_PATIENCE_SECONDS:g} s")
        await asyncio.sleep(0.1)
