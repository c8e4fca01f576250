"""Worker processes, and waiting for them."""

import asyncio
import json
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from tests.brokers import pause_seconds
from tests.forked import Forked

PATIENCE_SECONDS = 120.0
"""How long to wait for anything: being slow on a busy machine is not a failure."""
_STACKS_SECONDS = 10.0


class Worker:
    """A worker process, or one that runs another command."""

    def __init__(self, process: "subprocess.Popen[bytes] | Forked") -> None:
        self.process = process
        self.url = ""
        self._errors: list[bytes] = []
        self._reader = threading.Thread(target=self._read_errors, daemon=True)
        # A process waits in the middle of a message once nobody has read what a pipe can hold.
        self._reader.start()

    def _read_errors(self) -> None:
        if self.process.stderr is not None:
            with self.process.stderr:
                self._errors.extend(self.process.stderr)

    def wait_ready(self, *, seconds: float = PATIENCE_SECONDS) -> None:
        """Wait for the line `ready URL`, or `ready`, whatever comes before it."""
        assert self.process.stdout is not None
        patience = threading.Timer(seconds, self.process.kill)
        patience.start()
        line = ""
        for line in map(bytes.decode, self.process.stdout):
            if line.startswith("ready"):
                break
        patience.cancel()
        if not line.startswith("ready"):
            self.process.kill()
            raise AssertionError(f"the worker did not become ready: {line}{self.errors()}")
        self.url = line.removeprefix("ready").strip()

    def get(self, path: str) -> Any:
        """Return the JSON answer to a GET request."""
        with urllib.request.urlopen(self.url + path, timeout=PATIENCE_SECONDS) as answer:
            return json.loads(answer.read())

    def metrics(self, name: str, **labels: str) -> float:
        """Return the sum of the samples of a metric that have these labels."""
        with urllib.request.urlopen(self.url + "/metrics", timeout=PATIENCE_SECONDS) as answer:
            text = answer.read().decode()
        return sum(
            sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )

    def status(self, path: str) -> int:
        """Return the status of the answer to a GET request."""
        try:
            with urllib.request.urlopen(self.url + path, timeout=PATIENCE_SECONDS) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code

    def terminate(self) -> int:
        """Send SIGTERM and return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        """Wait for the end of the process and return its exit code."""
        with suppress(subprocess.TimeoutExpired):
            return self.process.wait(timeout=PATIENCE_SECONDS)
        # Faust's worker then writes the stack of each thread and task.
        self.process.send_signal(signal.SIGUSR1)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=_STACKS_SECONDS)
        self.process.kill()
        raise AssertionError(f"the worker did not end: {self.errors()}")

    def error_line(self, part: str) -> str:
        """Wait for a line on standard error that contains a text, and return the first one."""
        until = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < until:
            for line in map(bytes.decode, self._errors):
                if part in line:
                    return line
            time.sleep(0.1)
        raise AssertionError(f"no line with {part!r}")

    def errors(self) -> str:
        """Wait for the process to exit, and return all that it wrote on standard error."""
        self.process.wait()
        self._reader.join()
        return b"".join(self._errors).decode()

    def kill(self) -> None:
        """Kill the process (it may be stopped, or have exited)."""
        self.process.kill()
        if said := self.errors():
            # Pytest shows it if the test fails.
            print(said)
        if self.process.stdout is not None:
            self.process.stdout.close()


async def eventually(
    condition: Callable[[], bool], *, seconds: float = PATIENCE_SECONDS, what: str = ""
) -> None:
    """Return as soon as a condition holds; fail, naming `what`, if it does not within `seconds`."""
    began = time.monotonic()
    while not condition():
        waited_seconds = time.monotonic() - began
        assert waited_seconds < seconds, f"not within {seconds} s: {what}"
        await asyncio.sleep(pause_seconds(waited_seconds))
