"""Forged event times against a true worker: `python -m benchmarks.forged_times --broker kafka`.

Into each of three collections (the broker dates its source; senders do; senders do and it is
packed) go 180 honest reports a second, each a message that is sent within `grace` of its event
time, and 100 that are dated as far ahead as is accepted. The worker is stopped for 20 s of every
minute, and the packer for 20 s of every 70. All forged reports are on time, so whatever is late is
honest.
"""

import asyncio
import os
import signal
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import numpy as np
from tests.brokers import broker
from tests.configuring import collection
from tests.lab import Lab

PARTITIONS: Final = 2
HONEST_A_SECOND: Final = 180
FORGED_A_SECOND: Final = 100
GRACE_MS: Final = 5_000
_NETWORK_MS: Final = 1_000
"""As much of the grace is left to what is between sending and the log."""
_AWAY_SECONDS: Final = 20
_STEP_SECONDS: Final = 0.1
_CATCH_UP_SECONDS: Final = 60.0


def measure_on(kind: str, *, seconds: int) -> list[tuple[str, int, int, int, int]]:
    """Return by collection: its name, and how many were sent, counted, late, and rejected."""
    with broker(kind) as running, tempfile.TemporaryDirectory() as folder:
        window = f'grace = "{GRACE_MS}ms", idle = "5s"'
        plain = collection(partitions=PARTITIONS, window=window, extra="")
        packed = collection(partitions=PARTITIONS, window=window, extra='input = "frames"')
        bodies = {"dated": plain, "created": plain, "packed": packed}
        lab = Lab(running, Path(folder), collections=bodies, partitions=PARTITIONS)
        return asyncio.run(_measure(lab, kind, seconds))


async def _measure(lab: Lab, kind: str, seconds: int) -> list[tuple[str, int, int, int, int]]:
    labs = [lab.of(name) for name in ("dated", "created", "packed")]
    if kind == "kafka":
        source = lab.config.collections["dated"].topics.source
        configs = {"message.timestamp.type": "LogAppendTime"}
        await lab.create(source, partitions=PARTITIONS, configs=configs)
    with ExitStack() as stack:
        worker = stack.enter_context(lab.worker())
        packer = stack.enter_context(lab.packer())
        stops = [
            asyncio.create_task(_stop_and_go(one.process.pid, every))
            for one, every in ((worker, 60), (packer, 70))
        ]
        sent = await _send(labs, seconds)
        for task in stops:
            task.cancel()
        await asyncio.gather(*stops, return_exceptions=True)
        deadline = time.monotonic() + _CATCH_UP_SECONDS
        found: list[tuple[str, int, int, int, int]] = []
        while time.monotonic() < deadline:
            found = [await _decided(one, sent) for one in labs]
            if all(sum(row[2:]) == sent for row in found):
                break
            await asyncio.sleep(1)
        return found


async def _decided(lab: Lab, sent: int) -> tuple[str, int, int, int, int]:
    heads = await lab.heads()
    rejected = sum(sum(head.rejected.values()) for head in heads)
    n, late = sum(head.n for head in heads), sum(head.late for head in heads)
    return lab.collection.name, sent, n, late, rejected


async def _stop_and_go(pid: int, every_seconds: int) -> None:
    try:
        while True:
            await asyncio.sleep(every_seconds - _AWAY_SECONDS)
            os.kill(pid, signal.SIGSTOP)
            await asyncio.sleep(_AWAY_SECONDS)
            os.kill(pid, signal.SIGCONT)
    finally:
        os.kill(pid, signal.SIGCONT)


async def _send(labs: Sequence[Lab], seconds: int) -> int:
    """Send to all collections for so long; returns how many reports each got."""
    rng, sent = np.random.default_rng(1), 0
    rate = HONEST_A_SECOND + FORGED_A_SECOND
    async with labs[0].producer() as producer:
        began = time.monotonic()
        while (elapsed := time.monotonic() - began) < seconds:
            due = int(elapsed * rate) - sent
            now_ms = time.time_ns() // 1_000_000
            waiting = []
            for _ in range(due):
                forged = rng.random() < FORGED_A_SECOND / rate
                ago_ms = -GRACE_MS if forged else int(rng.integers(0, GRACE_MS - _NETWORK_MS))
                for lab in labs:
                    value = lab.collection.spec.frame_reports(
                        lab.reports(1), times_ms=np.array([now_ms - ago_ms])
                    )
                    source = lab.collection.topics.source
                    partition = int(rng.integers(0, PARTITIONS))
                    waiting.append(await producer.send(source, value, partition=partition))
            sent += due
            await asyncio.gather(*waiting)
            await asyncio.sleep(_STEP_SECONDS)
    return sent
