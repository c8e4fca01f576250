"""`ldpstream reset`: a collection starts over."""

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
from ldpstream.agents.terminal.common import config_option, load_collection
from ldpstream.agents.terminal.confirming import confirm
from ldpstream.agents.terminal.errors import Failed

_PATIENCE_SECONDS: Final = 30.0


@click.command()
@config_option
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.argument("name")
def reset(config_file: str, name: str, *, yes: bool) -> None:
    """Throw the state of a collection away: for a source topic that was created again.

    Stop the workers first. All windows, counters and orders to close are forgotten; whatever the
    source topic holds is counted from its beginning when a worker starts. Packed messages go with
    the state, so stop the packers, too. Published estimates and copies of late and rejected reports
    stay in their topics.
    """
    config, collection = load_collection(config_file, name)
    if not yes:
        _confirm(collection)
    deleted = broker.run(_reset(config, collection), config.kafka, config_file)
    if deleted:
        click.echo(f"{name} starts over: deleted {' and '.join(deleted)}")
    else:
        click.echo(f"{name} had no state")


def _confirm(collection: CollectionConfig) -> None:
    confirm(
        f"Throw all state of {collection.name} away? Everything in {collection.topics.source} "
        "is then counted from its beginning."
    )


async def _reset(config: Config, collection: CollectionConfig) -> Sequence[str]:
    # An order to close names offsets of the old source: it must not apply to the new one.
    topics = collection.topics
    names = [topics.changelog, topics.control]
    async with broker.admin(config.kafka) as admin:
        groups = dict.fromkeys(await worker_groups(admin, config.worker.id), "workers")
        if topics.frames is not None:
            # What was packed of the old source may not show it, where the broker has no topic ids.
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
            raise Failed(f"topic {name} cannot be deleted: {for_code(code).description}")
    # Deletion is not done when it is acknowledged, and until then the name is taken.
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while await describe(admin, names):
        if time.monotonic() > deadline:
            raise Failed(f"the broker still shows {names[0]} after {_PATIENCE_SECONDS:g} s")
        await asyncio.sleep(0.1)
