"""`minimum` over a broker: bursts are shown without sending more, also after a restart."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from ldpstream.agents.device import Sender
from tests.broker.conftest import on_kafka
from tests.brokers import Broker
from tests.lab import START_MS, Lab
from tests.processes import Worker, eventually
from tests.stream.cli import spawn

pytestmark = [pytest.mark.broker, on_kafka]

_MINIMUM: Final = 100
_N: Final = 500
_TABLE: Final = f"""mechanism = "block-hadamard"
epsilon = 1.0
domain = {{ size = 12 }}
partitions = 3
precision = "1s"
minimum = {_MINIMUM}
window = {{ size = "1h", idle = "off" }}
publish = {{ top = 0 }}"""
_OPEN: Final = f"start={START_MS // 3_600_000 * 3_600_000}"
_PATH: Final = f"/estimate?{_OPEN}&end={START_MS // 3_600_000 * 3_600_000 + 3_600_000}"


async def in_one_frame(lab: Lab) -> None:
    async with lab.producer() as producer:
        frame = lab.frame(_N, first_ms=START_MS, last_ms=START_MS)
        await producer.send_and_wait(lab.collection.topics.source, frame, partition=1)


async def in_many_frames(lab: Lab) -> None:
    async with lab.producer() as producer:
        topic = lab.collection.topics.source
        frames = [lab.frame(1, first_ms=START_MS, last_ms=START_MS) for _ in range(_N)]
        sent = [await producer.send(topic, f, partition=i % 3) for i, f in enumerate(frames)]
        await asyncio.gather(*sent)


async def by_a_sender(lab: Lab) -> None:
    spec = lab.collection.spec
    async with Sender(spec, lab.broker.bootstrap, options=lab.broker.options) as sender:
        await sender.send([3] * _N, times_ms=[START_MS] * _N)


async def by_the_command(lab: Lab) -> None:
    lines = f"{START_MS},3\n".encode() * _N
    command = (
        "send",
        "-c",
        str(lab.file),
        lab.collection.name,
        "--times",
        "--replay",
        "--batch",
        "150",
    )
    assert (await asyncio.to_thread(spawn, *command, stdin=lines)).returncode == 0


async def shown(worker: Worker, name: str = "city", *, of: int) -> Mapping[str, Any]:
    """Wait until all but fewer than twice the minimum of so many are shown; return the document."""
    documents: list[Mapping[str, Any]] = [{}]

    def seen() -> bool:
        # Before the first report there is no window.
        if not worker.get(f"/api/collections/{name}/status")["counted"]:
            return False
        document = documents[0] = worker.get(f"/api/collections/{name}{_PATH}")
        waiting = document.get("waiting")
        counted = document["n"] + (waiting["reports"] if waiting else 0)
        return not document["withheld"] and counted == of and document["n"] > of - 2 * _MINIMUM

    await eventually(seen, what=f"{of} reports of an open window")
    return documents[0]


BURSTS: Final = (in_one_frame, in_many_frames, by_a_sender, by_the_command)


async def test_all_but_twice_the_minimum_of_a_burst_is_shown(
    running: Broker, tmp_path: Path
) -> None:
    """Each way to send has a collection of its own; the worker counts all of them."""
    names = [burst.__name__.replace("_", "-") for burst in BURSTS]
    whole = Lab(running, tmp_path, collections=dict.fromkeys(names, _TABLE))
    labs, first, second = [whole.of(name) for name in names], {}, {}
    with whole.worker() as worker:
        for lab, burst in zip(labs, BURSTS, strict=True):
            name = lab.collection.name
            await burst(lab)
            first[name] = await shown(worker, name, of=_N)
            assert _N - 2 * _MINIMUM < first[name]["n"] <= _N - _MINIMUM
            waiting = first[name]["waiting"]
            assert (waiting["reports"], waiting["until"]) == (_N - first[name]["n"], "reports")
            assert waiting["more"] == 2 * _MINIMUM - waiting["reports"]
            await burst(lab)
            second[name] = await shown(worker, name, of=2 * _N)
            assert second[name]["n"] - first[name]["n"] >= _MINIMUM
        worker.process.kill()
    # What was shown stays shown, and the next owner goes on.
    with whole.worker() as worker:
        for lab, burst in zip(labs, BURSTS, strict=True):
            name = lab.collection.name
            again = await shown(worker, name, of=2 * _N)
            assert again["n"] == second[name]["n"]
            await burst(lab)
            await shown(worker, name, of=3 * _N)
