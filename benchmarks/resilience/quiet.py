"""Whether an hour without any trouble fires an alert: a real Prometheus with the shipped rules.

    python -m benchmarks.resilience.quiet [--seconds 600] [--broker kafka]

Two workers and a gateway; devices upload honest reports of two collections, one of them
with a correct prior. The rules' hour passes in `--seconds`: every duration in them is scaled down
accordingly (3600: unchanged), ranges by 60 at most, so that they hold several scrapes. All alerts
that were firing or pending at any time are printed. At the end the messages of one collection are
malformed, to show that an alert can fire at all. Exits with 1 if any other alert fired, or if this
one did not.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import numpy as np
from tests.broker.test_gateway import configure, post, started
from tests.brokers import broker
from tests.configuring import collection
from tests.lab import Lab
from tests.ops.monitoring import RANGES, Prometheus, prometheus
from tests.processes import PATIENCE_SECONDS

HOUR_SECONDS: Final = 3_600
TOKEN: Final = "0123456789abcdef" * 2
WINDOW: Final = 'grace = "1s", idle = "5s"'
ILL: Final = """mechanism = "lip"
epsilon = 1.0
prior = 0.25
domain = { values = ["well", "ill"] }
partitions = 2
minimum = 1
window = { size = "10s", grace = "1s", idle = "5s" }
publish = { every = "500ms" }
"""
EXPECTED: Final = "LdpstreamRejected"


async def send(lab: Lab, gateway_url: str, stop: asyncio.Event, junk: asyncio.Event) -> None:
    """Upload reports of one collection and produce those of the other, five times a second."""
    trips, ill = lab.config.collections["trips"], lab.config.collections["ill"]
    rng = np.random.default_rng(11)
    async with lab.producer() as producer:
        turn = 0
        while not stop.is_set():
            now_ms = time.time_ns() // 1_000_000
            frame = trips.spec.frame(rng.integers(0, 12, 40), times_ms=np.full(40, now_ms))
            status = await asyncio.to_thread(post, gateway_url, frame)
            assert status == 200, status
            people = [("well", "ill")[int(x)] for x in rng.random(200) < 0.25]
            honest = ill.spec.frame(people, times_ms=np.full(200, now_ms))
            for partition in range(2):
                value = b"junk" if junk.is_set() else honest
                await producer.send_and_wait(ill.topics.source, value, partition=partition)
            # A gateway writes to one partition at a time; in turns, so that no partition is silent.
            frame = trips.spec.frame(rng.integers(0, 12, 9), times_ms=np.full(9, now_ms))
            await producer.send_and_wait(trips.topics.source, frame, partition=turn % 2)
            turn += 1
            await asyncio.sleep(0.2)


def seen(server: Prometheus, state: str, seconds: float) -> set[str]:
    """Return the alerts that were in this state at any time in the last `seconds`."""
    asked = f'max by (alertname) (max_over_time(ALERTS{{alertstate="{state}"}}[{seconds:.0f}s]))'
    return {one["metric"]["alertname"] for one in server.query(asked)}


async def until(holds: Callable[[], bool], *, seconds: float) -> bool:
    """Return whether a condition becomes true in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if await asyncio.to_thread(holds):
            return True
        await asyncio.sleep(0.5)
    return False


async def run(seconds: float, kind: str, folder: Path) -> int:
    """Run, print what was seen, and return the exit code."""
    token = folder / "read-token"
    token.write_text(TOKEN)
    factor = HOUR_SECONDS / seconds
    bodies = {"trips": collection(partitions=2, window=WINDOW, extra=""), "ill": ILL}
    with broker(kind) as running, ExitStack() as stack:
        lab = configure(Lab(running, folder, collections=bodies))
        text = lab.file.read_text()
        lab.file.write_text(text.replace("[worker]", f'[worker]\ntoken = {{ file = "{token}" }}'))
        lab.reload()
        workers = [stack.enter_context(lab.worker()) for _ in range(2)]
        gateway = stack.enter_context(started(lab))
        targets = {
            "ldpstream": [one.url.removeprefix("http://") for one in workers],
            "ldpstream-gateway": [gateway.url.removeprefix("http://")],
        }
        stop, junk = asyncio.Event(), asyncio.Event()
        sending = asyncio.create_task(send(lab, gateway.url, stop, junk))
        server = stack.enter_context(
            prometheus(
                folder, targets=targets, token=token, holds=factor, ranges=min(factor, RANGES)
            )
        )
        every = sum(map(len, targets.values()))
        owned = "min(max by (collection, partition) (ldpstream_owned)) == 1"
        up = f"count(up == 1) == {every} and on () {owned} unless on () ALERTS"
        assert await until(lambda: bool(server.query(up)), seconds=PATIENCE_SECONDS), (
            "not every process can be scraped, or a partition has no owner"
        )
        began = time.monotonic()
        await asyncio.sleep(seconds)
        lasted = time.monotonic() - began
        fired, pending = (seen(server, state, lasted) for state in ("firing", "pending"))
        counted = server.query("sum(ldpstream_reports_total)")[0]["value"][1]
        print(
            f"{lasted:.0f} s with durations divided by {factor:g}, {every} processes in "
            f"{', '.join(targets)}, {int(counted):,} reports counted: "
            f"fired {', '.join(sorted(fired)) or 'nothing'}; "
            f"began and ended: {', '.join(sorted(pending - fired)) or 'nothing'}",
            flush=True,
        )
        junk.set()
        after = await until(
            lambda: EXPECTED in {name for name, _ in server.firing()},
            seconds=PATIENCE_SECONDS + 600 / factor,
        )
        print(f"then junk alone in one collection: {EXPECTED} {'fired' if after else 'DID NOT'}")
        stop.set()
        await sending
    return int(bool(fired) or not after)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--broker", choices=("embedded", "kafka"), default="embedded")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(asyncio.run(run(given.seconds, given.broker, Path(folder))))


if __name__ == "__main__":
    main()
