"""A broker with a listener for each worker behind a proxy of its own, and signals to its nodes.

Devices and readers use the broker's plain listener. The embedded broker has one listener only,
behind one proxy: cutting it cuts everybody off.
"""

import asyncio
import contextlib
import os
import signal
import socket
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from ldpstream.agents.broker import embedded
from ldpstream.agents.broker.embedded import Guarded, start_guarded
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


_CHUNK_BYTES = 1 << 16
_SLOW_BYTES, _SLOW_SECONDS = 2_000, 0.05


class Proxy:
    """Forwards a port of its own, `port`, to another one on the loopback interface.

    While `cut`, connections are closed and new ones are closed at once; while `held`, they stay
    open and nothing passes, in either direction; while `slow`, 40 kB/s pass on each.
    """

    def __init__(self, target_port: int, port: int) -> None:
        self.port = port
        self._target_port = target_port
        self._passing = asyncio.Event()
        self._passing.set()
        self._is_cut = False
        self._slow = False
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def serve(self) -> AsyncIterator["Proxy"]:
        """Forward for the length of a `with` block."""
        server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        try:
            yield self
        finally:
            server.close()
            await self._drop()

    async def cut(self, seconds: float) -> None:
        """Close all connections, and let none be made for so long."""
        self._is_cut = True
        await self._drop()
        await asyncio.sleep(seconds)
        self._is_cut = False

    async def hold(self, seconds: float) -> None:
        """Let nothing pass for so long, on connections that stay open."""
        self._passing.clear()
        await asyncio.sleep(seconds)
        self._passing.set()

    async def slow(self, seconds: float) -> None:
        """Let little pass for so long."""
        self._slow = True
        await asyncio.sleep(seconds)
        self._slow = False

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._forward(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.ExitStack() as open_ones:
            open_ones.callback(writer.transport.abort)
            if self._is_cut:
                return
            try:
                there, back = await asyncio.open_connection("127.0.0.1", self._target_port)
            except OSError:
                return
            open_ones.callback(back.transport.abort)
            ways = [
                asyncio.create_task(self._pump(reader, back)),
                asyncio.create_task(self._pump(there, writer)),
            ]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(_SLOW_BYTES if self._slow else _CHUNK_BYTES):
                await self._passing.wait()
                if self._slow:
                    await asyncio.sleep(_SLOW_SECONDS)
                writer.write(data)
                await writer.drain()

    async def _drop(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@dataclass(frozen=True)
class Services:
    """Running brokers; `bootstraps` and `proxies` are by worker."""

    kind: str
    broker: Broker
    nodes: tuple[KafkaServer, ...]
    """Those that can be killed and started: none of the embedded broker."""
    guarded: Guarded | None
    """The embedded broker."""
    bootstraps: tuple[str, ...]
    proxies: tuple[tuple[Proxy, ...], ...]

    def pids(self, node: int) -> list[int]:
        """Return the processes of a node, without those that watch over it."""
        running = self.guarded if self.guarded is not None else self.nodes[node].running
        return [] if running is None else _children(running.process.pid)

    def signal(self, node: int, number: signal.Signals) -> None:
        """Send a signal to a node."""
        for pid in self.pids(node):
            os.kill(pid, number)


def _children(pid: int) -> list[int]:
    """Return the processes under a guard, without its shell."""
    found = []
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        name = Path(f"/proc/{child}/comm").read_text().strip()
        found += [] if name == "sh" else [int(child)]
    return found


@asynccontextmanager
async def surroundings(kind: str, workers: int) -> AsyncIterator[Services]:
    """Run `embedded`, `kafka` or `cluster` for this many workers."""
    async with AsyncExitStack() as stack:
        if kind == "embedded":
            yield await _embedded(stack, workers)
        else:
            yield await _kafka(stack, kind, workers)


async def _embedded(stack: AsyncExitStack, workers: int) -> Services:
    inside, outside = free_ports(2)
    binary = embedded._binary()
    command = [binary, "broker", "--listener-url", f"tcp://127.0.0.1:{inside}"]
    command += ["--advertised-listener-url", f"tcp://127.0.0.1:{outside}"]
    command += ["--storage-engine", "memory://tansu/"]
    guarded = start_guarded(command, environment={"RUST_LOG": "warn"})
    stack.callback(guarded.stop)
    proxy = await stack.enter_async_context(Proxy(inside, outside).serve())
    await _connectable(inside)
    address = f"127.0.0.1:{outside}"
    return Services(
        "embedded",
        Broker("embedded", address),
        (),
        guarded,
        (address,) * workers,
        ((proxy,),) * workers,
    )


async def _kafka(stack: AsyncExitStack, kind: str, workers: int) -> Services:
    count = NODES if kind == "cluster" else 1
    ports = iter(free_ports(2 * workers * count))
    listeners = [
        {f"W{w}": (next(ports), next(ports)) for w in range(workers)} for _ in range(count)
    ]
    inner = stack.enter_context(ExitStack())
    nodes = await asyncio.to_thread(_start, inner, listeners)
    rows = []
    for worker in range(workers):
        row = [Proxy(*listening[f"W{worker}"]) for listening in listeners]
        rows.append(tuple([await stack.enter_async_context(proxy.serve()) for proxy in row]))
    bootstrap = ",".join(node.bootstrap for node in nodes)
    addresses = tuple(",".join(f"127.0.0.1:{p.port}" for p in row) for row in rows)
    return Services(kind, Broker("kafka", bootstrap), nodes, None, addresses, tuple(rows))


def _start(
    stack: ExitStack, listeners: list[dict[str, tuple[int, int]]]
) -> tuple[KafkaServer, ...]:
    if len(listeners) > 1:
        return stack.enter_context(kafka_cluster(listeners)).nodes
    server = stack.enter_context(KafkaServer.prepared(listeners=listeners[0]))
    server.start()
    return (server,)


async def _connectable(port: int) -> None:
    def tries() -> None:
        with socket.create_connection(("127.0.0.1", port), timeout=1.0):
            pass

    for _ in range(200):
        try:
            await asyncio.to_thread(tries)
        except OSError:
            await asyncio.sleep(0.05)
        else:
            return
    raise TimeoutError(f"nothing serves port {port}")
