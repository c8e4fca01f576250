"""The collections of a run with faults on a broker, with changelogs that compact all the time."""

from pathlib import Path

from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from tests.brokers import Broker
from tests.crash.faults.stream import PLANS
from tests.lab import Lab

EAGER = {
    "cleanup.policy": "compact",
    "segment.ms": "2000",
    "min.cleanable.dirty.ratio": "0.001",
    "delete.retention.ms": "0",
}


class FaultLab(Lab):
    """The collections of `PLANS` on a broker."""

    def __init__(self, broker: Broker, folder: Path) -> None:
        tables = {name: plan.table for name, plan in PLANS.items()}
        super().__init__(broker, folder, collections=tables)

    async def prepare(self, replicas: int) -> None:
        """Create what a run wants otherwise than by default."""
        for name, config in self.config.collections.items():
            await self.create(
                config.topics.changelog,
                partitions=config.partitions,
                replicas=replicas,
                configs=EAGER,
            )
            stamped = {"message.timestamp.type": "LogAppendTime"} if PLANS[name].live else {}
            await self.create(
                config.topics.source,
                partitions=config.partitions,
                replicas=replicas,
                configs=stamped,
            )

    def with_rocksdb(self, number: int) -> Path:
        """Return a configuration for a worker whose cells are in a directory of its own."""
        file = self.file.with_stem(f"rocksdb-{number}")
        store = f'store = "rocksdb"\ndata = "rocksdb-{number}"'
        file.write_text(self.file.read_text().replace('store = "memory"', store))
        return file

    async def flushing(self, on: bool) -> None:
        """Let every record of every changelog and source reach the disk before the next one."""
        async with self.admin() as admin:
            more = {"flush.messages": "1"} if on else {}
            resources = []
            for name, config in self.config.collections.items():
                stamped = {"message.timestamp.type": "LogAppendTime"} if PLANS[name].live else {}
                for topic, configs in (
                    (config.topics.changelog, EAGER),
                    (config.topics.source, stamped),
                ):
                    resources.append(
                        ConfigResource(ConfigResourceType.TOPIC, topic, {**configs, **more})
                    )
            await admin.alter_configs(resources)
