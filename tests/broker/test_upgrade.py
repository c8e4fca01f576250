"""Releases change by a rolling restart, up and back, while reports flow."""

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ldpstream.agents.state.context import NEWEST
from tests.broker.conftest import on_kafka
from tests.broker.flow import Flow
from tests.broker.test_rolling import fleet, start
from tests.brokers import Broker
from tests.checkouts import HERE, extract
from tests.lab import Lab
from tests.processes import Worker, eventually

pytestmark = [
    pytest.mark.broker,
    on_kafka,
]

BEFORE = "308f105"
"""A commit that reads and writes format 1 alone."""
_MAIN = "import sys; from ldpstream.agents.cli.main import main; main(sys.argv[1:])"


def has(commit: str) -> bool:
    if shutil.which("git") is None:
        return False
    found = subprocess.run(
        ["git", "-C", str(HERE), "cat-file", "-e", f"{commit}^{{commit}}"],
        capture_output=True,
        check=False,
    )
    return found.returncode == 0


def start_before(lab: Lab, checkout: Path) -> Worker:
    """Start a worker of another checkout; the caller has to kill it."""
    process = subprocess.Popen(
        [sys.executable, "-c", _MAIN, "worker", "-c", str(lab.file)],
        env={**os.environ, "PYTHONPATH": str(checkout / "src"), "PYTHONSAFEPATH": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    return Worker(process)


@pytest.mark.skipif(not has(BEFORE), reason="a checkout without its history, or no git")
async def test_releases_share_the_partitions_until_all_read_the_new_format(
    running: Broker, tmp_path: Path
) -> None:
    lab = Lab(running, tmp_path)
    held = lab.changed("held.toml", ("[collection.trips]", "[collection.trips]\nformat = 1"))
    checkout = extract(BEFORE, tmp_path)

    async def before() -> Worker:
        worker = start_before(lab, checkout)
        workers.append(worker)
        await asyncio.to_thread(worker.wait_ready)
        return worker

    async def stop_oldest() -> None:
        assert await asyncio.to_thread(workers[0].terminate) == 0
        assert workers[0].errors() == ""
        workers.pop(0).kill()

    async def formats() -> set[int]:
        return {head.format for head in await lab.heads()}

    with fleet() as workers:
        await asyncio.gather(before(), before())
        async with lab.producer() as producer:
            flow = Flow(producer, [lab])
            async with flow.run():
                # 1. Up: the releases share the partitions.
                await asyncio.sleep(2)
                await start(workers, lab)
                await stop_oldest()
                await asyncio.sleep(3)
                # 2. Back, from a fleet that is all new and held.
                await start(workers, held)
                await stop_oldest()
                await asyncio.sleep(2)
                await before()
                await stop_oldest()
                await asyncio.sleep(3)
                assert await formats() == {1}
                # 3. Up for good.
                newer = await start(workers, lab)
                await stop_oldest()
                await stop_oldest()
                await start(workers, lab)
                await eventually(lambda: newer.metrics("ldpstream_state_format") == 4 * NEWEST)
                # 4. The earlier release refuses by name, and everything goes on.
                late = start_before(lab, checkout)
                workers.append(late)
                assert late.process.stderr is not None
                said = await asyncio.to_thread(late.process.stderr.readline)
                while b"stops" not in said:
                    said = await asyncio.to_thread(late.process.stderr.readline)
                assert b"head has format version 2: this release reads version 1" in said
                late.kill()
                await asyncio.sleep(2)
            await lab.close(flow.end_ms)
        await lab.check_exact()
        assert {head.reads for head in await lab.heads()} == {NEWEST}
