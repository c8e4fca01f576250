"""Time uploads through a gateway, and through a bare handler.

    python -m benchmarks.speed.gateway --seconds 5

One run measures two servers by turns, each in a process of its own, with the same clients in this
process: a bare aiohttp handler that only reads the body, and `ldpstream gateway` over the embedded
broker, which checks each report, waits for the broker and the disk, and then answers. For uploads
of one and of 100 reports it prints the medians of all rounds: uploads and reports a second, the
server's processor time per upload, and how many times that of the bare handler this is. The clients
keep `--clients` connections busy and use processor time too: if they share the server's core the
rates are lower bounds, and the ratio of processor time says what the gateway costs.
"""

import argparse
import asyncio
import contextlib
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
from aiohttp import ClientSession, TCPConnector
from rich.console import Console
from rich.table import Table
from tests.brokers import KINDS, broker
from tests.lab import Lab
from tests.processes import Worker

_BARE = """
import asyncio
from aiohttp import web
async def read(request):
    await request.read()
    return web.json_response({"accepted": 1})
app = web.Application()
app.router.add_post("/v1/collections/trips/reports", read)
async def main():
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(f"ready http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""
_GATEWAY = "from ldpstream.agents.cli.main import main; main()"


@dataclass(frozen=True)
class Round:
    """The uploads of one server in one round."""

    uploads: int
    seconds: float
    cpu_seconds: float


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure uploads through the gateway.")
    parser.add_argument("--broker", choices=KINDS, default="embedded")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each round of a server")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--clients", type=int, default=256, help="connections")
    given = parser.parse_args()
    with broker(given.broker) as running, tempfile.TemporaryDirectory() as folder:
        lab = Lab(running, Path(folder))
        text = lab.file.read_text()
        table = f'[gateway]\nhttp = "127.0.0.1:0"\nqueue = {10 * given.clients}\n'
        lab.file.write_text(text.replace("[collection.", f"{table}[collection.", 1))
        asyncio.run(lab.create(lab.collection.topics.source, partitions=4))
        with (
            _started([_BARE]) as bare,
            _started([_GATEWAY, "gateway", "-c", str(lab.file)]) as gateway,
        ):
            servers = {"a bare handler": bare, "ldpstream gateway": gateway}
            measured = {reports: _measure(servers, lab, reports, given) for reports in (1, 100)}
    _show(measured, given.clients)


@contextlib.contextmanager
def _started(command: list[str]) -> Iterator[Worker]:
    process = subprocess.Popen(
        [sys.executable, "-c", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    server = Worker(process)
    try:
        server.wait_ready()
        yield server
    finally:
        server.kill()


def _measure(
    servers: Mapping[str, Worker], lab: Lab, reports: int, given: argparse.Namespace
) -> Mapping[str, Sequence[Round]]:
    now_ms = time.time_ns() // 1_000_000
    spec = lab.collection.spec
    frames = [
        spec.frame_reports(lab.reports(reports), times_ms=np.full(reports, now_ms))
        for _ in range(256)
    ]
    rounds: dict[str, list[Round]] = {name: [] for name in servers}
    # The first round warms up.
    for number in range(given.rounds + 1):
        for name, server in servers.items():
            before, began = _cpu_seconds(server), time.perf_counter()
            uploads = asyncio.run(
                _upload(server.url, frames, seconds=given.seconds, clients=given.clients)
            )
            took = time.perf_counter() - began
            if number:
                rounds[name].append(Round(uploads, took, _cpu_seconds(server) - before))
    return rounds


async def _upload(url: str, frames: list[bytes], *, seconds: float, clients: int) -> int:
    url = f"{url}/v1/collections/trips/reports"
    end = time.perf_counter() + seconds

    async def client(session: ClientSession, number: int) -> int:
        done = 0
        while time.perf_counter() < end:
            headers = {
                "Content-Type": "application/vnd.ldpstream.frame",
                "Idempotency-Key": secrets.token_hex(16),
            }
            body = frames[(number + done) % len(frames)]
            async with session.post(url, data=body, headers=headers) as answer:
                if answer.status != 200:
                    raise RuntimeError(await answer.text())
                await answer.read()
            done += 1
        return done

    async with ClientSession(connector=TCPConnector(limit=clients)) as session:
        return sum(await asyncio.gather(*(client(session, n) for n in range(clients))))


def _cpu_seconds(server: Worker) -> float:
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    # utime and stime, in hundredths of a second on every Linux.
    return (int(fields[11]) + int(fields[12])) / 100


def _show(measured: Mapping[int, Mapping[str, Sequence[Round]]], clients: int) -> None:
    table = Table(title=f"uploads, {clients} connections")
    for heading in (
        "server",
        "reports an upload",
        "uploads/s",
        "reports/s",
        "CPU us",
        "times bare",
    ):
        table.add_column(heading, justify="left" if heading == "server" else "right")
    for reports, servers in measured.items():
        bare = [each.cpu_seconds / each.uploads for each in servers["a bare handler"]]
        for name, rounds in servers.items():
            a_second = median(each.uploads / each.seconds for each in rounds)
            cpu = [each.cpu_seconds / each.uploads for each in rounds]
            table.add_row(
                name,
                str(reports),
                f"{a_second:,.0f}",
                f"{a_second * reports:,.0f}",
                f"{1e6 * median(cpu):.0f}",
                f"{median(own / limit for own, limit in zip(cpu, bare, strict=True)):.2f}",
            )
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
