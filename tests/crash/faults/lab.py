"""The collections of a run with faults on a broker, with changelogs that compact all the time."""

import asyncio
from pathlib import Path
from typing import Final

from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError

from ldpstream.agents.config import CollectionConfig
from tests.brokers import Broker
from tests.crash.faults.stream import tables
from tests.lab import Lab

EAGER = {
    "cleanup.policy": "compact",
    "segment.ms": "2000",
    "min.cleanable.dirty.ratio": "0.001",
    "delete.retention.ms": "0",
}


_PATIENCE_SECONDS: Final = 60.0
_RETRY_SECONDS: Final = 0.5


class FaultLab(Lab):
    """The collections of a run on a broker; with `idle`, partitions of all of them fall idle."""

    def __init__(self, broker: Broker, folder: Path, *, idle: bool = False) -> None:
        super().__init__(broker, folder, collections=tables(idle=idle))

    async def prepare(self, replicas: int) -> None:
        """Create the topics whose settings differ from the default."""
        for config in self.config.collections.values():
            await self.create(
                config.topics.changelog,
                partitions=config.partitions,
                replicas=replicas,
                configs=EAGER,
            )
            await self.create(
                config.topics.source,
                partitions=config.partitions,
                replicas=replicas,
                configs=_stamped(config),
            )

    async def flushing(self, on: bool) -> None:
        """Let every record of every changelog and source reach the disk before the next one.

        Waits for a broker that another fault has just ended.
        """
        more = {"flush.messages": "1"} if on else {}
        resources = [
            ConfigResource(ConfigResourceType.TOPIC, topic, {**configs, **more})
            for config in self.config.collections.values()
            for topic, configs in (
                (config.topics.changelog, EAGER),
                (config.topics.source, _stamped(config)),
            )
        ]
        async with asyncio.timeout(_PATIENCE_SECONDS):
            while True:
                try:
                    async with self.admin() as admin:
                        await admin.alter_configs(resources)
                except KafkaError:
                    await asyncio.sleep(_RETRY_SECONDS)
                else:
                    return


def _stamped(config: CollectionConfig) -> dict[str, str]:
    """Return the setting by which the broker dates messages, if partitions can fall idle."""
    live = config.window.idle_ms is not None
    return {"message.timestamp.type": "LogAppendTime"} if live else {}
