"""Three Kafka nodes, each broker and controller, any of which can be killed and started."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.brokers import Broker, KafkaServer, fetch_jars
from tests.ports import free_ports

NODES = 3
_REPLICATED = {
    "default.replication.factor": 3,
    "min.insync.replicas": 2,
    "offsets.topic.replication.factor": 3,
    "transaction.state.log.replication.factor": 3,
    "transaction.state.log.min.isr": 2,
    "share.coordinator.state.topic.replication.factor": 3,
    "share.coordinator.state.topic.min.isr": 2,
    # A killed node is noticed within a test's patience.
    "broker.session.timeout.ms": 3000,
    "broker.heartbeat.interval.ms": 500,
    "replica.lag.time.max.ms": 5000,
    # A node that comes back soon leads its partitions again.
    "leader.imbalance.check.interval.seconds": 3,
    "leader.imbalance.per.broker.percentage": 0,
}


@dataclass(frozen=True)
class Cluster:
    """Running nodes."""

    nodes: tuple[KafkaServer, ...]

    @property
    def broker(self) -> Broker:
        """All of them as one address list."""
        return Broker("kafka", ",".join(node.bootstrap for node in self.nodes))


@contextmanager
def kafka_cluster(
    listeners: Sequence[Mapping[str, tuple[int, int]]] = ({},) * NODES,
) -> Iterator[Cluster]:
    """Run three nodes: three replicas of everything, two of which have to acknowledge.

    `listeners` are more listeners of each node, as `KafkaServer` takes them.
    """
    fetch_jars()
    ports = free_ports(2 * NODES)
    serving, controllers = ports[:NODES], ports[NODES:]
    voters = ",".join(f"{i + 1}@127.0.0.1:{port}" for i, port in enumerate(controllers))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ldpstream-kafka-")))

        def prepare(number: int) -> KafkaServer:
            directory = folder / str(number)
            directory.mkdir()
            settings = {
                "PORT": serving[number],
                "CONTROLLER_PORT": controllers[number],
                "node.id": number + 1,
                "controller.quorum.voters": voters,
                **_REPLICATED,
            }
            return KafkaServer(
                directory, settings=settings, listeners=listeners[number], heap="-Xmx384m"
            )

        with ThreadPoolExecutor(NODES) as pool:
            nodes = tuple(pool.map(prepare, range(NODES)))
        for node in nodes:
            stack.callback(node.stop)
            node.launch()
        for node in nodes:
            node.await_serving()
        yield Cluster(nodes)
