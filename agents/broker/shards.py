"""The addresses of workers of all shards, from the topic where they publish them.

The topic has clients of its own, whose failures affect only forwarded requests.
"""

import asyncio
import hashlib
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from aiokafka import AIOKafkaConsumer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError

from ldpstream.agents.broker.clients import replication_factor
from ldpstream.agents.broker.connections import Connections
from ldpstream.agents.broker.metadata import count_brokers, describe, missing_on_topic
from ldpstream.agents.broker.offsets import replayed
from ldpstream.agents.broker.producer import LastingProducer
from ldpstream.agents.broker.refusals import not_permitted
from ldpstream.agents.broker.topics import await_topics, create_topics
from ldpstream.agents.config import CollectionConfig, Config
from ldpstream.agents.config.worker import Shard, is_advertised

MISSED_RENEWALS: Final = 3
"""A worker is forgotten if this one renews its address this many times and the other does not."""
RENEW_SECONDS: Final = 10.0
_LOOK_SECONDS: Final = 0.2
_LEAVE_SECONDS: Final = 2.0
_WAIT_MS: Final = 1_000
# Workers renew their addresses every few seconds, so old records are useless.
_CONFIGS: Final = {
    "cleanup.policy": "compact,delete",
    "retention.ms": "3600000",
    "segment.ms": "600000",
}
ADDRESS_OPERATIONS: Final = frozenset({"read", "write"})
"""What a worker does with the topic of addresses."""

log = logging.getLogger(__name__)


@dataclass
class _Worker:
    shard: Shard
    missed: int = 0


@dataclass(frozen=True)
class Elsewhere:
    """A collection of another shard as configured, and whether any worker answers for it."""

    config: CollectionConfig
    shard: Shard
    ready: bool

    @property
    def accepted(self) -> "tuple[Elsewhere, ...]":
        """The same, under the specs that it accepts."""
        return tuple(Elsewhere(config, self.shard, self.ready) for config in self.config.accept)

    @property
    def problem(self) -> str:
        """What to say if no worker answers."""
        return f"{self.config.name}: shard {self.shard} has no worker that answers"


@dataclass(frozen=True)
class Shards:
    """One worker's shard and address, all collections, and the addresses of other workers.

    Ages are counted in this worker's own renewals on the same topic. So no clocks are compared, and
    while the broker is away no worker is forgotten.
    """

    shard: Shard
    address: str
    collections: Mapping[str, CollectionConfig]
    _workers: dict[str, _Worker] = field(default_factory=dict)

    def record(self) -> tuple[bytes, bytes]:
        """Return the key and value by which this worker publishes its shard and address."""
        return self.address.encode(), json.dumps({"shard": str(self.shard)}).encode()

    def read(self, key: bytes | None, value: bytes | None) -> None:
        """Read a record of the topic; ignore what is not an address."""
        address = (key or b"").decode(errors="replace")
        if address == self.address:
            self._age()
        elif value is None:
            self._workers.pop(address, None)
        elif (shard := _read_shard(value)) is None or not self._may_learn_tokens(address):
            log.warning("ignored a worker's address that is invalid or not HTTPS")
        else:
            self._workers[address] = _Worker(shard)

    def _age(self) -> None:
        for address, worker in list(self._workers.items()):
            worker.missed += 1
            if worker.missed >= MISSED_RENEWALS:
                del self._workers[address]

    def _may_learn_tokens(self, address: str) -> bool:
        """Return whether readers' tokens may be sent there: it is as secure as this worker."""
        return is_advertised(address) and address.startswith(("https:", self.address.split("/")[0]))

    def elsewhere(self, name: str) -> bool:
        """Return whether a configured collection is of another shard."""
        return name in self.collections and not self.shard.holds(name)

    def addresses(self, name: str) -> list[str]:
        """Return the addresses of workers that run a collection, in an order of this worker's own.

        So each worker sticks to one of them, and different workers to different ones.
        """
        running = [address for address, worker in self._workers.items() if worker.shard.holds(name)]
        return sorted(running, key=self._rank)

    def remote_collections(self) -> dict[str, Elsewhere]:
        """Return all collections of other shards."""
        return {
            name: Elsewhere(config, self.shard.of(name), bool(self.addresses(name)))
            for name, config in self.collections.items()
            if self.elsewhere(name)
        }

    def _rank(self, address: str) -> bytes:
        return hashlib.sha256(f"{self.address} {address}".encode()).digest()


def _read_shard(value: bytes) -> Shard | None:
    try:
        return Shard.parse(json.loads(value)["shard"])
    except (ValueError, TypeError, LookupError):
        return None


@asynccontextmanager
async def publishing_addresses(
    config: Config, shards: Shards, stop: asyncio.Event, *, ready: Callable[[], bool]
) -> AsyncIterator[None]:
    """Publish and read addresses during a block.

    This worker's own is published once it is `ready`, and deleted as soon as `stop` is set.
    """
    topic, connections = config.worker.addresses_topic, Connections(config.kafka)
    producer = LastingProducer(config.kafka.bootstrap, config.kafka.options)
    try:
        admin = await connections.admin()
        factor = replication_factor(config.kafka.options, brokers=count_brokers(admin))
        if missing := await declare_addresses(admin, topic, replication_factor=factor):
            raise not_permitted(config.kafka, missing)
        await connections.producer(producer)
        consumer = await connections.reader(committed_only=True, wait_ms=_WAIT_MS)
        reading = asyncio.create_task(_read_addresses(consumer, topic, shards))
        publishing = asyncio.create_task(
            _publish_address(partial(producer.send, topic, 0), shards, stop, ready)
        )
        try:
            yield
        finally:
            reading.cancel()
            if not stop.is_set():
                # Something else ends the worker.
                stop.set()
            await asyncio.wait((publishing,), timeout=_LEAVE_SECONDS)
            publishing.cancel()
    finally:
        await connections.close()


async def _read_addresses(consumer: AIOKafkaConsumer, topic: str, shards: Shards) -> None:
    async for record in replayed(consumer, [topic]):
        shards.read(record.key, record.value)


async def _publish_address(
    send: Callable[[bytes, bytes | None], Awaitable[None]],
    shards: Shards,
    stop: asyncio.Event,
    ready: Callable[[], bool],
) -> None:
    while not ready():
        if await _within(_LOOK_SECONDS, stop):
            return
    key, value = shards.record()
    while True:
        await _send_or_log(send(key, value))
        if await _within(RENEW_SECONDS, stop):
            # From now on requests go elsewhere.
            await _send_or_log(send(key, None))
            return


async def _within(seconds: float, stop: asyncio.Event) -> bool:
    """Return whether `stop` is set within this many seconds."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stop.wait()
    return stop.is_set()


async def _send_or_log(sending: Awaitable[None]) -> None:
    try:
        await sending
    except KafkaError as error:
        log.debug("the address was not told: %r", error)


async def declare_addresses(
    client: AIOKafkaAdminClient, topic: str, *, replication_factor: int
) -> Sequence[str]:
    """Create the topic if it is missing; return what is not permitted on it."""
    states = await describe(client, [topic])
    if topic not in states:
        await create_topics(
            client, [NewTopic(topic, 1, replication_factor, topic_configs=_CONFIGS)]
        )
        states = await await_topics(client, [topic])
    return [*missing_on_topic(topic, states[topic], ADDRESS_OPERATIONS)]
