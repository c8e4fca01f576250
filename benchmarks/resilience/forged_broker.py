"""Forged event times against a real worker.

    python -m benchmarks.resilience.forged_times --broker kafka

Each of two collections (timestamps by the broker; by senders) gets 180 honest reports a second,
each a message that is sent within `grace` of its event time, and 100 forged ones dated as far ahead
as is accepted. The worker is stopped for 20 s of every minute. Forged reports are always on time,
so all late reports are honest. There must not be more of these than *tardy* reports, which arrived
later than `grace` after their event time: by the broker's timestamps where it sets them, otherwise
by their acknowledgement.
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
"""This much of the grace is left for the way from sender to log."""
_EVERY_SECONDS: Final = 60
_AWAY_SECONDS: Final = 20
_STEP_SECONDS: Final = 0.1
_MOST_A_STEP: Final = 100
_CATCH_UP_SECONDS: Final = 60.0


Row = tuple[str, int, int, int, int, int]


def measure_on(kind: str, *, seconds: int) -> list[Row]:
    """Return per collection its name, and the reports sent, tardy, counted, late and rejected."""
    with broker(kind) as running, tempfile.TemporaryDirectory() as folder:
        window = f'grace = "{GRACE_MS}ms", idle = "5s"'
        plain = collection(partitions=PARTITIONS, window=window, extra="")
        bodies = {"dated": plain, "created": plain}
        lab = Lab(running, Path(folder), collections=bodies, partitions=PARTITIONS)
        return asyncio.run(_measure(lab, kind, seconds))


async def _measure(lab: Lab, kind: str, seconds: int) -> list[Row]:
    labs = [lab.of(name) for name in ("dated", "created")]
    if kind == "kafka":
        source = lab.config.collections["dated"].topics.source
        configs = {"message.timestamp.type": "LogAppendTime"}
        await lab.create(source, partitions=PARTITIONS, configs=configs)
    with ExitStack() as stack:
        worker = stack.enter_context(lab.worker())
        stopping = asyncio.create_task(_stop_and_go(worker.process.pid))
        sent, tardy = await _send(labs, seconds)
        stopping.cancel()
        await asyncio.gather(stopping, return_exceptions=True)
        deadline = time.monotonic() + _CATCH_UP_SECONDS
        found: list[Row] = []
        while time.monotonic() < deadline:
            found = [await _decided(one, sent, late) for one, late in zip(labs, tardy, strict=True)]
            if all(sum(row[3:]) == sent for row in found):
                break
            await asyncio.sleep(1)
        return found


async def _decided(lab: Lab, sent: int, tardy: int) -> Row:
    heads = await lab.heads()
    rejected = sum(sum(head.rejected.values()) for head in heads)
    n, late = sum(head.n for head in heads), sum(head.late for head in heads)
    return lab.collection.name, sent, tardy, n, late, rejected


async def _stop_and_go(pid: int) -> None:
    try:
        while True:
            await asyncio.sleep(_EVERY_SECONDS - _AWAY_SECONDS)
            os.kill(pid, signal.SIGSTOP)
            await asyncio.sleep(_AWAY_SECONDS)
            os.kill(pid, signal.SIGCONT)
    finally:
        os.kill(pid, signal.SIGCONT)


async def _send(labs: Sequence[Lab], seconds: int) -> tuple[int, list[int]]:
    """Send for some seconds; return the numbers of reports and of tardy ones by collection."""
    rng, sent, tardy = np.random.default_rng(1), 0, [0] * len(labs)
    rate = HONEST_A_SECOND + FORGED_A_SECOND
    async with labs[0].producer() as producer:
        began = time.monotonic()
        while (elapsed := time.monotonic() - began) < seconds:
            now_ms, due = _now_ms(), min(int(elapsed * rate) - sent, _MOST_A_STEP)
            forged = rng.random(due) < FORGED_A_SECOND / rate
            ago_ms = np.where(forged, -GRACE_MS, rng.integers(0, GRACE_MS - _NETWORK_MS, due))
            waiting = []
            for lab in labs:
                spec, source = lab.collection.spec, lab.collection.topics.source
                for report, time_ms in zip(lab.reports(due), now_ms - ago_ms, strict=True):
                    value = spec.frame_reports(report[None], times_ms=time_ms[None])
                    partition = int(rng.integers(0, PARTITIONS))
                    waiting.append(await producer.send(source, value, partition=partition))
            found = [one.timestamp for one in await asyncio.gather(*waiting)]
            acknowledged_ms = _now_ms()
            for place in range(len(labs)):
                dated = found[place * due : (place + 1) * due] if place == 0 else [acknowledged_ms]
                tardy[place] += int((np.array(dated) - (now_ms - ago_ms) > GRACE_MS).sum())
            sent += due
            await asyncio.sleep(_STEP_SECONDS if due < _MOST_A_STEP else 0)
    return sent, tardy


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
