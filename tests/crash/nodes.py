"""Kafka nodes that are killed one after another, and come back, while a stream is counted."""

import asyncio
import random
from contextlib import ExitStack

from tests.brokers import KafkaServer
from tests.crash.cluster import Cluster
from tests.crash.scenario import Stream
from tests.lab import START_MS, Lab
from tests.ledger import WINDOW_MS

WINDOWS = 5
DOWN_SECONDS = 5.0
"""Longer than the session of a node that has gone: its partitions get other leaders."""


async def run_with_nodes_killed(
    lab: Lab,
    cluster: Cluster,
    *,
    times: int,
    reports: int,
    a_frame: int = 100,
    seed: int = 0,
) -> None:
    """Count a stream while nodes are killed with -9 and started again, and check every count."""
    rng = random.Random(seed)
    with ExitStack() as stack:
        worker = stack.enter_context(lab.worker())

        async def disturb() -> None:
            for node in (rng.choice(cluster.nodes) for _ in range(times)):
                await asyncio.sleep(2.0)
                await _kill_and_start(node)

        async with lab.producer() as producer:
            stream = Stream(lab, producer, reports=reports, a_frame=a_frame)
            disturbances = asyncio.create_task(disturb())
            rate = reports / a_frame / (times * (DOWN_SECONDS + 8.0))
            await stream.run(disturbances, frames_a_second=rate)
            await disturbances
        await lab.close(START_MS + WINDOWS * WINDOW_MS)
        await lab.check_exact()
        heads = await lab.heads()
        assert sum(head.n for head in heads) == lab.ledger.n
        assert sum(head.late for head in heads) == stream.sent.late
        assert sum(sum(head.rejected.values()) for head in heads) == stream.sent.rejected
        assert sum(head.lost for head in heads) == 0
        assert worker.terminate() == 0


async def _kill_and_start(node: KafkaServer) -> None:
    await asyncio.to_thread(node.stop)
    await asyncio.sleep(DOWN_SECONDS)
    await asyncio.to_thread(node.start)
