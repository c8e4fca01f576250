"""The same world with workers whose replicas keep their cells in a local store on disk.

A worker that crashes finds in its store the state of the last evaluation, and reads on from there;
writes since then are lost. All runs share one database, each with its own names.
"""

import itertools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ldpstream.agents.engine.rocks_store import RocksDatabase, RocksStore, StoredReplica
from ldpstream.agents.state.cell_store import HeadRecord
from ldpstream.agents.state.encoding import state_prefix
from tests.stream.simulation.evaluation import Store
from tests.stream.simulation.worker import Reader, Worker
from tests.stream.simulation.world import World

_runs = itertools.count()


class StoredReader(Reader):
    """A replica, its store once it has one, and the records that the store's content came from."""

    kept: dict[str, Store] | None = None
    name = ""

    def resume(self, store: RocksStore, kept: dict[str, Store], name: str) -> None:
        self.kept, self.name = kept, name
        self.position = self.replica.resume(store)
        if self.position:
            self.store = dict(kept[name])

    def read(self, limit: int) -> None:
        super().read(limit)
        if self.kept is not None and not self.replica._staged:
            self.kept[self.name] = dict(self.store)


class StoredWorker(Worker):
    """A worker that continues from its store, if it has left one."""

    def __init__(self, world: "StoredWorld", name: str) -> None:
        super().__init__(world, name)
        for p, reader in enumerate(self.readers):
            assert isinstance(reader, StoredReader)
            topic = f"{world.run} {name}"
            replica = StoredReplica(
                topic=topic, partition=p, topic_id="01", state=state_prefix(world.context).hex()
            )
            reader.resume(world.store_class(world.database, replica), world.kept, f"{topic} {p}")


class StoredWorld(World):
    reader_class = StoredReader
    worker_class = StoredWorker
    store_class: type[RocksStore] = RocksStore
    database: RocksDatabase

    def __init__(self, seed: int, *, kafka: bool = True) -> None:
        self.run = next(_runs)
        self.kept: dict[str, Store] = {}
        super().__init__(seed, kafka=kafka)


class Ahead(RocksStore):
    """A mutant: says that the log has been evaluated further than it has."""

    def commit(self, position: int, *evaluated: Any) -> None:
        super().commit(position + 1, *evaluated)


class Torn(RocksStore):
    """A mutant: the position is written by itself, before the state that belongs to it."""

    behind: Iterable[bytes] = ()

    def commit(
        self, position: int, winner: HeadRecord | None, changed: Iterable[bytes], keys: Any
    ) -> None:
        super().commit(position, winner, self.behind, keys)
        self.behind = [*changed]


@contextmanager
def stored_world(
    folder: Path, *, store_class: type[RocksStore] = RocksStore
) -> Iterator[type[World]]:
    """Yield a class of worlds whose stores are in a folder."""
    database = RocksDatabase(folder / "simulated")
    try:
        yield type("World", (StoredWorld,), {"database": database, "store_class": store_class})
    finally:
        database.close()
