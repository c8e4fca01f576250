"""The README's commands and programs, run as they stand there; only addresses are exchanged."""

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from tests.brokers import wait_until

_README: Final = (Path(__file__).resolve().parents[2] / "README.md").read_text()
_MAIN: Final = "from ldpstream.agents.cli.main import main; main()"
_BROKER: Final = "127.0.0.1:9092"
_WORKER: Final = "http://127.0.0.1:6066"


def blocks(heading: str, language: str) -> list[str]:
    """Return the code of one language below a heading, up to the next heading."""
    section = re.split(rf"^#+ {re.escape(heading)}$", _README, flags=re.MULTILINE)[1]
    # A line of a shell's comment looks like a heading, but for the space before it.
    section = re.split(r"^##+ ", section, flags=re.MULTILINE)[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", section, flags=re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Place:
    """A folder where `ldpstream` and `faust` are commands, and addresses in place of README's."""

    folder: Path
    addresses: dict[str, str]

    def run(self, *command: str) -> str:
        """Run to the end and return what it printed; it has to succeed and to warn of nothing."""
        result = subprocess.run(
            command, cwd=self.folder, env=self._environment, capture_output=True, text=True
        )
        assert result.returncode == 0, result.stdout + result.stderr
        assert "Traceback" not in result.stderr
        return result.stdout

    def shell(self, code: str) -> str:
        return self.run("sh", "-eu", "-c", self.here(code))

    @contextmanager
    def running(self, *command: str) -> Iterator["subprocess.Popen[bytes]"]:
        """Run for the length of the block; Ctrl-C has to end it with exit code 0."""
        process = subprocess.Popen(
            command, cwd=self.folder, env=self._environment, stdout=subprocess.PIPE
        )
        try:
            yield process
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=30) == 0
        finally:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()

    def here(self, code: str) -> str:
        for theirs, ours in self.addresses.items():
            code = code.replace(theirs, ours)
        return code

    def exchange(self, name: str) -> None:
        file = self.folder / name
        file.write_text(self.here(file.read_text()))

    @property
    def _environment(self) -> dict[str, str]:
        return {**os.environ, "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        broker, http = one.getsockname()[1], other.getsockname()[1]
    (tmp_path / "bin").mkdir()
    for name, arguments in (("ldpstream", ["-c", _MAIN]), ("faust", ["-m", "faust"])):
        script = tmp_path / "bin" / name
        script.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, *arguments])} "$@"\n')
        script.chmod(0o755)
    http_address = _WORKER.removeprefix("http://")
    return Place(tmp_path, {_BROKER: f"127.0.0.1:{broker}", http_address: f"127.0.0.1:{http}"})


def test_values_to_estimates_without_a_broker(place: Place):
    (code,) = blocks("Without a broker: values to estimates", "sh")
    certificates, document = (json.loads(said) for said in _documents(place.shell(code)))
    assert certificates["pass"] is True
    assert (document["n"], len(document["distribution"])) == (1000, 4)
    # Five standard errors: exceeded by less than one run in a million.
    truth = {"bus": 0.6, "train": 0.0, "walk": 0.0, "car": 0.4}
    for entry in document["distribution"]:
        assert abs(entry["share"] - truth[entry["value"]]) < 5 * entry["se"]


@pytest.mark.broker
def test_the_live_collection_the_device_and_the_app(place: Place):
    broker, terminal, devices = blocks("With a broker: a live collection", "sh")
    assert _commands(broker) == ["ldpstream devbroker"]
    init, check, worker = _commands(terminal)
    port = place.addresses[_BROKER].rpartition(":")[2]
    with place.running("sh", "-c", f"exec {_commands(broker)[0]} --port {port}") as serving:
        assert _line(serving) == f"ready {place.addresses[_BROKER]}"
        place.shell(init)
        place.exchange("ldpstream.toml")
        assert place.shell(check).endswith("ok\n")
        with place.running("sh", "-c", f"exec {worker}") as working:
            assert _line(working) == f"ready {place.here(_WORKER)}"
            said = place.shell(devices)
            assert "3000 reports in 3 messages acknowledged" in said
            wait_until(lambda: _windows(place)[0]["final"], "the final window")
            assert _windows(place)[0]["n"] == 3000
            (device,) = blocks("A device, in three lines", "python")
            place.run(sys.executable, "-c", place.here(device))
            wait_until(lambda: _numbers(place) == [3000, 1], "the device's report")
        _test_app(place)


def _test_app(place: Place) -> None:
    (code,) = blocks("Inside your own Faust app", "python")
    served = "from ldpstream.agents.http import serve\n" + code + _ANSWER
    port = place.here(_WORKER).rpartition(":")[2]
    (place.folder / "shop.py").write_text(served.replace("PORT", port))
    start = "exec faust -A shop worker --without-web --loglevel error"
    with place.running("sh", "-c", start):
        wait_until(lambda: _ready(place), "the app")
        place.run("sh", "-c", "echo 60,110 | ldpstream send checkins")
        wait_until(lambda: _numbers(place) == [3000, 2], "the app's window")


# The README's app shows its windows nowhere; the test has to see them.
_ANSWER: Final = """

@app.task
async def answer():
    import asyncio
    async with serve(pipeline, port=PORT, metrics=pipeline.metrics):
        await asyncio.Event().wait()
"""


def _commands(code: str) -> list[str]:
    return [line.partition("#")[0].strip() for line in code.splitlines()]


def _documents(text: str) -> list[str]:
    """Return a pretty JSON document, and the line of JSON after it."""
    first, _, second = text.partition("\n}\n")
    return [first + "\n}", second]


def _line(process: "subprocess.Popen[bytes]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().decode().strip()


def _windows(place: Place) -> list[dict[str, Any]]:
    url = f"{place.here(_WORKER)}/api/collections/checkins/windows"
    with urllib.request.urlopen(url, timeout=10) as answer:
        windows: list[dict[str, Any]] = json.load(answer)["windows"]
    return windows


def _numbers(place: Place) -> list[int]:
    return [window["n"] for window in _windows(place)]


def _ready(place: Place) -> bool:
    try:
        with urllib.request.urlopen(f"{place.here(_WORKER)}/readyz", timeout=10) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
