"""Choose the store of a worker's replicas: memory, or RocksDB in `data`."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, Protocol

from aiokafka import TopicPartition

from ldpstream.agents.config import CollectionConfig, WorkerConfig
from ldpstream.agents.state.cell_store import CellStore, StoreError
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.encoding import state_prefix
from ldpstream.agents.state.records import RecordError
from ldpstream.agents.state.replica import Replica

if TYPE_CHECKING:
    from ldpstream.agents.engine.rocks_store import RocksDatabase

_FOLDER: Final = "rocksdb"
_MISSING: Final = (
    'worker.store: "rocksdb" needs a package that is not installed: '
    "pip install 'ldpstream[rocksdb]'"
)

log = logging.getLogger(__name__)


def why_no_store(worker: WorkerConfig) -> str | None:
    """Return why the configured store cannot be used here, or None."""
    return _MISSING if worker.store == "rocksdb" and find_spec("rocksdict") is None else None


class Replicated(Protocol):
    """A collection whose changelog is read."""

    @property
    def config(self) -> CollectionConfig:
        """The collection's configuration."""

    @property
    def context(self) -> Context:
        """What the collection's state machine needs."""

    @property
    def replicas(self) -> Sequence[Replica]:
        """The reader of every partition's changelog, by partition."""


class Stores:
    """The stores of one worker."""

    def __init__(self, worker: WorkerConfig) -> None:
        self._worker = worker
        self._database: RocksDatabase | None = None

    def open(
        self,
        collections: Iterable[Replicated],
        topic_id: Callable[[str], bytes],
        *,
        other_collections: Iterable[Replicated] = (),
    ) -> Mapping[TopicPartition, int]:
        """Open each replica's store; return the offsets from which replicas continue, if not 0.

        `topic_id` returns the id of a topic, empty if the broker has none. Stored values of these
        collections and of `other_collections` are kept; everything else is dropped.

        Raises:
            StoreError: if the store cannot be opened.
        """
        if self._worker.store == "memory":
            return {}
        if why := why_no_store(self._worker):
            raise StoreError(why)
        # Imported here, because the package is an extra.
        from ldpstream.agents.engine.rocks_store import (
            RocksDatabase,
            RocksStore,
            StoredReplica,
            drop_unused_replicas,
        )

        def name(collection: Replicated, replica: Replica) -> StoredReplica:
            return StoredReplica(
                topic=collection.config.topics.changelog,
                partition=replica.partition,
                topic_id=topic_id(collection.config.topics.changelog).hex(),
                state=state_prefix(collection.context).hex(),
            )

        if self._database is None:
            self._database = RocksDatabase(self._worker.data / _FOLDER)
        replicas = [
            (collection, replica) for collection in collections for replica in collection.replicas
        ]
        stored = [name(collection, replica) for collection, replica in replicas]
        retained = [
            name(other, replica) for other in other_collections for replica in other.replicas
        ]
        drop_unused_replicas(self._database, [*stored, *retained])
        offsets = {}
        for (_, replica), what in zip(replicas, stored, strict=True):
            offset = _resume(replica, RocksStore(self._database, what), what.topic)
            if offset:
                offsets[TopicPartition(what.topic, what.partition)] = offset
        return offsets

    def close(self) -> None:
        """Close the database, if it is open."""
        if self._database is not None:
            self._database.close()
            self._database = None


def _resume(replica: Replica, store: CellStore, topic: str) -> int:
    try:
        return replica.resume(store)
    except RecordError as error:
        log.warning(
            "the state of %s[%d] is read from the changelog's beginning: the stored one cannot be "
            "used: %s",
            *(topic, replica.partition, error),
        )
        replica.restart()
        return 0
