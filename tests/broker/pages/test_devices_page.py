"""The programs of docs/how-to/devices.md and consume-estimates.md, as they are."""

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from ldpstream.mechanisms import decode_frame
from tests.broker.conftest import on_kafka
from tests.brokers import Broker
from tests.lab import Lab
from tests.pages import Place, blocks
from tests.ports import free_ports
from tests.stream.cli import invoke

_PAGE: Final = (Path(__file__).resolve().parents[3] / "docs" / "how-to" / "devices.md").read_text()


def programs(language: str) -> list[str]:
    found = re.findall(rf"^```{language}\n(.*?)^```$", _PAGE, re.MULTILINE | re.DOTALL)
    assert found
    return found


@pytest.mark.broker
@on_kafka
async def test_the_python_program_sends_each_report_once(lab: Lab) -> None:
    topic, spec = lab.collection.topics.source, lab.collection.spec
    await lab.create(topic, partitions=4)
    (program,) = programs("python")
    await asyncio.to_thread(run, program, lab.file.parent)
    frames = [
        decode_frame(record.value, fingerprint=spec.fingerprint, report_bytes=1)
        for record in await lab.records(topic)
    ]
    assert sum(int(frame.counts.sum()) for frame in frames) == 3


def run(program: str, folder: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", program]
    assert subprocess.run(command, cwd=folder, timeout=180).returncode == 0


def test_the_shell_commands_spend_once_a_window(tmp_path: Path) -> None:
    code, _ = programs("sh")
    file = tmp_path / "ldpstream.toml"
    file.write_text(
        '[collection.trips]\nmechanism = "block-hadamard"\nepsilon = 1.0\n'
        'domain = { size = 12, blocks = 4 }\nwindow = { size = "1d" }\n'
    )
    lines = [
        re.fullmatch(r"(?:echo (\d+) \| )?ldpstream (.*?)(?: +#.*)?", one)
        for one in code.splitlines()
    ]
    said = []
    for line in lines:
        assert line is not None
        command, *rest = line[2].replace("me.ledger", str(tmp_path / "me.ledger")).split()
        config = [] if command == "ledger" else ["-c", str(file)]
        ended = invoke(command, *config, *rest, stdin=f"{line[1]}\n")
        assert ended.exit_code == 0, ended.stderr
        said.append(ended.stdout)
    first, again, shown = said
    # The same report, unless the day ends between the two.
    spent = json.loads(shown)
    assert first == again or len(spent["windows"]) == 2
    assert spent["spent"] == len(spent["windows"])


@pytest.mark.broker
@on_kafka
def test_a_file_is_sent_again_to_empty_topics(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "values.csv").write_text("3\n" * 10)
    _, code = programs("sh")
    erase, send = ([*line.split()[1:], "-c", str(lab.file)] for line in code.splitlines())
    for command in (send, erase, send):
        ended = invoke(*command)
        assert ended.exit_code == 0, ended.stderr
    assert ended.stdout == "10 reports in 1 message acknowledged\n"
    assert len(asyncio.run(lab.records(lab.collection.topics.source))) == 1


PAGE: Final = "docs/how-to/consume-estimates.md"
SPENT: Final = 3
CONFIGURATION: Final = """
[kafka]
bootstrap = "BOOTSTRAP"

[worker]
id = "ID"
http = "127.0.0.1:HTTP"

[collection.modes]
mechanism = "randomized-response"
epsilon = 8.0
topic = "TOPIC"
partitions = 1
domain = { values = ["bus", "train"] }
"""
WEATHER: Final = """start,rain
2026-11-20T10:00:00Z,0.0
2026-11-20T11:00:00Z,3.5
2026-11-20T12:00:00Z,1.0
"""


@pytest.mark.broker
@on_kafka
async def test_finals_are_kept_and_joined(running: Broker, lab: Lab, tmp_path: Path) -> None:
    """Two windows, one of which is published twice, one that is withheld, and an open one."""
    topic, (http,) = lab.collection.topics.source + "-modes", free_ports(1)
    addresses = {
        "127.0.0.1:9092": running.bootstrap,
        "modes.reports.estimates": f"{topic}.estimates",
    }
    place = Place.made(tmp_path, addresses)
    text = CONFIGURATION.replace("BOOTSTRAP", running.bootstrap).replace("TOPIC", topic)
    text = text.replace("ID", f"{topic}-id").replace("HTTP", str(http))
    (tmp_path / "ldpstream.toml").write_text(text)
    (tmp_path / "weather.csv").write_text(WEATHER)
    send = "ldpstream send modes --times --replay"
    with place.running("sh", "-c", "exec ldpstream worker") as worker:
        assert worker.stdout is not None
        worker.stdout.readline()
        for hour, bus, train in ((10, 300, 100), (11, 200, 200), (12, 30, 10), (13, 150, 150)):
            lines = (
                f"2026-11-20T{hour}:00:00Z,bus\\n" * bus
                + f"2026-11-20T{hour}:30:00Z,train\\n" * train
            )
            place.shell(f"printf '{lines}' | {send}")
        place.shell("ldpstream close modes --until 2026-11-20T13:00:00Z")
        collect, pandas, duckdb = (one.code for one in blocks(PAGE) if one.language == "python")
        finals = tmp_path / "finals.jsonl"

        def lines() -> list[bytes]:
            finals.write_bytes(b"")
            place.run(sys.executable, "-c", place.here(collect).replace("5_000", "2_000"))
            return finals.read_bytes().splitlines()

        def collected(least: int) -> list[bytes]:
            """Run it until it has read all: on a busy machine it may end before a message comes."""
            while len(found := lines()) < least:
                pass
            return found

        (first, *_) = collected(SPENT)
        window = json.loads(first)["window"]
        async with lab.producer() as producer:
            await producer.send_and_wait(f"{topic}.estimates", first, key=window["start"].encode())
        found = [json.loads(line) for line in collected(SPENT + 1)]
    assert len(found) == SPENT + 1
    withheld = [one for one in found if one["withheld"]]
    assert [("distribution" in one, one["n"]) for one in withheld] == [(False, 40)]
    shown = place.run(sys.executable, "-c", pandas)
    assert shown.count("bus") == shown.count("train") == 2, shown
    assert shown.count("3.5") == 2
    rows = place.run(sys.executable, "-c", duckdb)
    assert rows.count("'bus'") == rows.count("'train'") == 2, rows
