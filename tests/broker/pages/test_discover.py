"""Unknown words end to end: a worker, devices, and a command that is killed between two rounds."""

import asyncio
import csv
import io
from pathlib import Path

import numpy as np
import pytest

from ldpstream.agents.device import Sender
from ldpstream.agents.edge.gateway_topics import NewestRounds
from ldpstream.mechanisms.ledger import Ledger
from ldpstream.mechanisms.wire.rounds import round_document, words_of
from tests.broker.conftest import on_one_broker
from tests.brokers import Broker
from tests.lab import START_MS, Lab
from tests.ledger import WINDOW_MS
from tests.processes import PATIENCE_SECONDS, Worker
from tests.seeded import SeededEntropy
from tests.stream.cli import invoke

pytestmark = pytest.mark.broker

ROUNDS = 3
TABLE = """mechanism = "projective-geometry"
epsilon = 4.0
domain = { words = { bits = 16, rounds = 3, kept = 16 } }
precision = "1ms"
partitions = 2
minimum = 1
window = { size = "10s", grace = "0s", idle = "off" }
"""
RUN_MS = START_MS - START_MS % (ROUNDS * WINDOW_MS)
DEVICES = 20_000
COMMON = {"é": 0.4, "ok": 0.2, "hi": 0.1, "no": 0.05}


@pytest.fixture
def lab(running: Broker, tmp_path: Path) -> Lab:
    return Lab(running, tmp_path, collections={"words": TABLE})


def held() -> list[str | bytes]:
    """The words of all devices: some are common, and a quarter of the devices has its own."""
    common = [word for word, share in COMMON.items() for _ in range(int(share * DEVICES))]
    rest = DEVICES - len(common)
    return [*common, *(bytes((1 + i % 255, 1 + i // 255)) for i in range(rest))]


async def in_round(device: Sender, number: int) -> Sender:
    """Wait until a round has been published."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            found = await device.round()
            if found is not None and words_of(found.spec).round.number >= number:
                return found
            await asyncio.sleep(0.5)


@on_one_broker
async def test_words_are_found_over_rounds_and_a_killed_command_goes_on(lab: Lab, tmp_path: Path):
    spec, rng = lab.collection.spec, np.random.default_rng(1)
    rounds = rng.integers(0, ROUNDS, DEVICES)
    everybody = np.array(held(), dtype=object)
    with lab.worker() as worker:
        words = ["words", "--url", worker.url, "--start", str(RUN_MS), "--csv"]
        command = lab.start_worker(command="discover", arguments=words)
        try:
            # Devices with ledgers on disk, each asked in every round, and a crowd without.
            reported = []
            async with Sender(spec, lab.broker.bootstrap, options=lab.broker.options) as device:
                for number in range(ROUNDS):
                    own = await in_round(device, number)
                    time_ms = RUN_MS + number * WINDOW_MS
                    for one in range(2):
                        file = tmp_path / f"{one}.ledger"
                        with Ledger(file, specs=[(spec, WINDOW_MS)], budget=4) as ledger:
                            sent = await own.send_once("ok", ledger=ledger, time_ms=time_ms)
                        reported += [one] * sent
                    said = await asyncio.to_thread(send_from_a_shell, lab, tmp_path, time_ms)
                    reported += [2] * said.startswith("1 report in 1 message")
                    entropy = SeededEntropy(number)
                    for part in np.array_split(everybody[rounds == number], 4):
                        reports = own.spec.privatize(list(part), entropy=entropy)
                        times = np.full(len(reports), time_ms)
                        await own.send_reports(reports, times_ms=times)
                    if number == 1:
                        command.kill()
                        command = lab.start_worker(command="discover", arguments=words)
                    await lab.close(time_ms + WINDOW_MS)
            assert sorted(reported) == [0, 1, 2]
            found = await asyncio.to_thread(listed, command)
        finally:
            command.kill()
    assert await served(lab) == round_document(spec, words_of(own.spec).round)
    assert found.keys() == COMMON.keys()
    for word, (low, high) in found.items():
        assert low <= COMMON[word] <= high
    assert len(await lab.records(str(lab.collection.topics.rounds))) == ROUNDS


def send_from_a_shell(lab: Lab, folder: Path, time_ms: int) -> str:
    """Let a device with a ledger of its own report a word; return what the command prints."""
    ledger = ("--ledger", str(folder / "shell.ledger"), "--budget", "4", "--times", "--replay")
    words = ("send", "-c", str(lab.file), "words", *ledger)
    result = invoke(*words, stdin=f"{time_ms},ok\n")
    assert result.exit_code == 0, result.output
    return result.stdout


async def served(lab: Lab) -> object:
    """Return the round that a gateway serves to devices."""
    return (await NewestRounds(lab.config.kafka).of(lab.collection))["round"]


def listed(command: Worker) -> dict[str, tuple[float, float]]:
    """Return the words that a command prints, with their bounds."""
    assert command.process.stdout is not None
    out = command.process.stdout.read()
    assert command.wait() == 0, command.errors()
    rows = csv.DictReader(io.StringIO(out.decode()))
    return {r["name"]: (float(r["low"]), float(r["high"])) for r in rows if r["kind"] == "value"}
