"""Workers killed with -9, or stopped beyond the session timeout and woken: counts stay exact.

The long forms are runs of `python -m tests.crash.run`.
"""

import asyncio

import pytest

from tests.broker.conftest import on_kafka
from tests.crash.scenario import run
from tests.lab import COMPACTED, Lab
from tests.processes import PATIENCE_SECONDS

pytestmark = [pytest.mark.broker, pytest.mark.crash]


@on_kafka  # its sessions are what users have
async def test_one_of_two_workers_becomes_a_zombie(lab: Lab) -> None:
    await run(lab, disturbance="stop", times=1, workers=2, reports=40_000, seed=3)


@on_kafka  # the embedded one never compacts
async def test_workers_are_killed_while_the_changelog_is_compacted(lab: Lab) -> None:
    changelog = lab.collection.topics.changelog
    await lab.create(changelog, partitions=lab.collection.partitions, configs=COMPACTED)
    await run(lab, disturbance="kill", times=3, workers=2, reports=40_000, seed=4)
    # Killed workers have deleted few tombstones, and the broker compacts when it gets to it.
    with lab.worker():
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await share_left(lab, changelog) > 0.8:  # noqa: ASYNC110 (the broker sends no event)
                await asyncio.sleep(0.5)


async def share_left(lab: Lab, topic: str) -> float:
    """Return the share of a topic's records that compaction has left."""
    records = await lab.records(topic)
    last = {record.partition: record.offset for record in records}
    return len(records) / sum(offset + 1 for offset in last.values())
