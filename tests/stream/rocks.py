"""A changelog, and a store on disk that holds its state."""

from pathlib import Path

from ldpstream.agents.config import Config, load_config
from ldpstream.agents.engine.rocks_store import RocksDatabase, RocksStore, StoredReplica
from ldpstream.agents.state.encoding import state_prefix
from ldpstream.agents.state.replica import Replica
from ldpstream.agents.state.windows import WindowSpec
from tests.stream.harness import HOUR_MS, Cluster, frame, make_context, make_spec

CONTEXT = make_context(
    WindowSpec(size_ms=HOUR_MS, hop_ms=HOUR_MS, retention_ms=3 * HOUR_MS), spec=make_spec(size=80)
)
STATE = state_prefix(CONTEXT).hex()
OURS = StoredReplica(topic="changelog", partition=0, topic_id="aa", state=STATE)


def filled(hours: int = 3) -> Cluster:
    """Return a changelog with a pane an hour, each with many values."""
    cluster = Cluster(CONTEXT)
    for hour in range(hours):
        cluster.produce(0, frame(*((hour * HOUR_MS, s) for s in range(60)), spec=CONTEXT.spec))
        cluster.step(HOUR_MS)
    cluster.steps(4)
    return cluster


def read(replica: Replica, cluster: Cluster, *, start: int = 0) -> None:
    log = cluster.log[0][start:]
    replica.read(log, position=len(cluster.log[0]), end=len(cluster.log[0]))


def shown(replica: Replica) -> object:
    values = {name: (cell.key, replica.value(name)) for name, cell in replica.cells.items()}
    return replica.head, values, set(replica.dead()), replica.all_panes()


def stored(database: RocksDatabase, cluster: Cluster) -> Replica:
    replica = Replica(CONTEXT, 0)
    replica.resume(RocksStore(database, OURS))
    read(replica, cluster)
    return replica


def rocks_config(folder: Path) -> Config:
    file = folder / "ldpstream.toml"
    file.write_text("""[worker]
store = "rocksdb"
[collection.c]
mechanism = "binary"
epsilon = [1.0, 1.0]
domain = { values = ["no", "yes"] }
""")
    return load_config(file, environment={})


def everything(database: RocksDatabase) -> list[bytes]:
    return [key for kind in (b"f", b"m", b"p", b"s", b"v") for key, _ in database.scan(kind)]
