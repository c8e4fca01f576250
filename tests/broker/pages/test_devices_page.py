"""The programs of docs/how-to/devices.md run as they are; only addresses are replaced."""

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
from tests.lab import Lab
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
