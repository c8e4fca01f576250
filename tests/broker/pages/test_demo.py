"""`ldpstream demo` as a user runs it: it adds up, and it leaves nothing behind however it ends."""

import os
import re
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.brokers import wait_until
from tests.pages import agrees, shown_alone

pytestmark = pytest.mark.broker

_MARK: Final = "LDPSTREAM_TEST_MARK"
LEDGER: Final = shown_alone("README.md", "Try it")
_RUN: Final = ("-m", "ldpstream.agents.cli")


class Demo:
    """A running demonstration, with its processes and its files."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.mark = uuid.uuid4().hex
        self.temporary = folder / "temporary"
        self.home = folder / "home"
        for made in (self.temporary, self.home):
            made.mkdir()
        self._output = folder / "output"
        environment = {
            **os.environ,
            _MARK: self.mark,
            "TMPDIR": str(self.temporary),
            "HOME": str(self.home),
            "PYTHONUNBUFFERED": "1",
        }
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, *_RUN, "demo", *(arguments or ("--port", "0"))],
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=environment,
                start_new_session=True,
            )

    @property
    def output(self) -> str:
        """What it has printed so far."""
        return self._output.read_text()

    def processes(self) -> list[int]:
        """Return all running processes that inherited its environment."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and self._is_ours(entry):
                found.append(int(entry.name))
        return found

    def _is_ours(self, entry: Path) -> bool:
        try:
            mark = f"{_MARK}={self.mark}".encode()
            return mark in (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            return False

    def wait_for(self, text: str) -> None:
        """Wait until it has printed this."""
        wait_until(
            lambda: re.search(text, self.output) is not None or self.process.poll() is not None,
            text,
            seconds=120,
        )
        assert self.process.poll() is None, self.output
        # The worker, the broker and its guard are seen, so checks of what remains would see them.
        assert len(self.processes()) >= 3

    def ended(self) -> int:
        """Wait for its end, see that nothing remains, and return its exit code."""
        code = self.process.wait(timeout=180)
        wait_until(lambda: not self.processes(), "all processes to end")
        assert list(self.temporary.iterdir()) == []
        assert list(self.home.iterdir()) == []
        return code


@contextmanager
def demo(folder: Path, *arguments: str) -> Iterator[Demo]:
    """Run a demonstration; kill what is left of it at the end."""
    running = Demo(folder, *arguments)
    try:
        yield running
    finally:
        for process in running.processes():
            os.kill(process, signal.SIGKILL)
        running.process.wait()


def number(text: str, name: str) -> int:
    """Return the first number of a line of the summary."""
    match = re.search(rf"^{name} +([\d,]+)", text, re.MULTILINE)
    assert match is not None, text
    return int(match[1].replace(",", ""))


def test_it_ends_by_itself_and_everything_adds_up(tmp_path: Path) -> None:
    with demo(tmp_path, "--seconds", "12", "--port", "0") as running:
        assert running.ended() == 0, running.output
        text = running.output
    assert re.search(r"^live page: http://127\.0\.0\.1:\d+$", text, re.MULTILINE)
    assert re.search(r"^\d+ s of 12 s \| sent .* \| counted ", text, re.MULTILINE)
    sent, counted, late, rejected = (
        number(text, name) for name in ("sent", "counted", "late", "rejected")
    )
    assert sent > 10_000
    assert counted + late + rejected == sent
    assert "accounted  counted + late + rejected = sent" in text
    held = re.search(r"([\d,]+) of ([\d,]+) true shares are inside their 95% bounds", text)
    assert held is not None
    inside, compared = (int(group.replace(",", "")) for group in held.groups())
    # 540 values in each of one or two windows: 80% would be 16 standard deviations too few.
    assert 0.8 * compared < inside <= compared
    assert compared >= 300
    ledger = re.search(r"^sent .*?^bounds [^\n]*$", text, re.MULTILINE | re.DOTALL)
    assert ledger is not None
    assert agrees(ledger[0], LEDGER), ledger[0]
    assert len(re.findall(r"^ ?[a-z]+ +\d+\.\d\d% ", text, re.MULTILINE)) == 12
    assert "Traceback" not in text


def test_ctrl_c_ends_it_with_a_summary(tmp_path: Path) -> None:
    with demo(tmp_path) as running:
        running.wait_for(r"\d s \| ")
        os.killpg(running.process.pid, signal.SIGINT)
        assert running.ended() == 0, running.output
        text = running.output
    assert "accounted  counted + late + rejected = sent" in text
    assert "Traceback" not in text


def test_an_impatient_ctrl_c_ends_it_at_once(tmp_path: Path) -> None:
    with demo(tmp_path) as running:
        running.wait_for(r"\d s \| ")

        def interrupt() -> bool:
            if running.process.poll() is None:
                os.killpg(running.process.pid, signal.SIGINT)
            return running.process.poll() is not None

        wait_until(interrupt, "the demonstration to end")
        assert running.ended() == 130, running.output
        assert "Traceback" not in running.output


def test_it_ends_with_its_broker(tmp_path: Path) -> None:
    with demo(tmp_path) as running:
        running.wait_for(r"\d s \| ")
        (broker,) = (
            process
            for process in running.processes()
            if Path(f"/proc/{process}/comm").read_text() == "tansu\n"
        )
        os.kill(broker, signal.SIGKILL)
        assert running.ended() == 1, running.output
        assert "the embedded broker has ended\n" in running.output
        assert "Traceback" not in running.output


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with demo(tmp_path, "--port", str(port)) as running:
            assert running.ended() == 1, running.output
            assert (
                f"--port: cannot serve HTTP on 127.0.0.1:{port}: Address already" in running.output
            )
            assert "[worker]" not in running.output
            assert "Traceback" not in running.output


def test_a_kill_leaves_no_process(tmp_path: Path) -> None:
    with demo(tmp_path) as running:
        running.wait_for("live page")
        os.kill(running.process.pid, signal.SIGKILL)
        running.process.wait()
        wait_until(lambda: not running.processes(), "all processes to end")
