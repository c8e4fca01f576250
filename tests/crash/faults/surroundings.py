"""A broker with a listener for each worker behind a proxy of its own, and signals to its nodes.

Devices and readers use the broker's plain listener. The embedded broker has one listener only,
behind one proxy: cutting it cuts everybody off.
"""

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from ldpstream.agents.broker import embedded
from ldpstream.agents.broker.embedded import Guarded, start_guarded
from tests.brokers import Broker, KafkaServer
from tests.crash.cluster import NODES, kafka_cluster
from tests.crash.faults.proxy import Proxy
from tests.ports import free_ports


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
