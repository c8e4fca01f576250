"""Brokers for tests: the embedded one, and Apache Kafka in KRaft mode where Java and Maven are.

With LDPSTREAM_REQUIRE_KAFKA=1 a Kafka that cannot be had fails the tests instead of skipping them.
"""

import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fcntl import LOCK_EX, flock
from pathlib import Path

import pytest

from ldpstream.agents.embedded import embedded_broker
from ldpstream.agents.guarded import Guarded, start_guarded

KINDS = ("embedded", "kafka")
_KAFKA = Path(__file__).resolve().parent.parent / "docker" / "kafka"
_FORMAT = ("kafka.tools.StorageTool", "format", "-t", "bGRwc3RyZWFtLXRlc3RzMQ")


class KafkaUnavailableError(RuntimeError):
    """Apache Kafka cannot run here; the message says why."""


@dataclass(frozen=True)
class Broker:
    """A running broker of one kind."""

    kind: str
    bootstrap: str

    @property
    def options(self) -> dict[str, object]:
        """Client settings that this broker needs beyond its address, as in `[kafka]`."""
        return {"enable_idempotence": False} if self.kind == "embedded" else {}


def why_no_kafka() -> str | None:
    """Return why Apache Kafka cannot run here, or None if it can."""
    for tool in ("java", "mvn"):
        if shutil.which(tool) is None:
            return f"{tool} is not on the PATH"
    shown = subprocess.run(["java", "-version"], capture_output=True, text=True).stderr
    version = re.search(r'version "(\d+)', shown)
    if version is None or int(version[1]) < 17:
        return "Apache Kafka 4 needs Java 17"
    return None


def skip_without_kafka() -> None:
    """Skip the calling test where Kafka cannot run, or fail it where Kafka is required."""
    reason = why_no_kafka()
    if reason is None:
        return
    if os.environ.get("LDPSTREAM_REQUIRE_KAFKA") == "1":
        pytest.fail(f"LDPSTREAM_REQUIRE_KAFKA=1, but {reason}")
    pytest.skip(f"Apache Kafka: {reason}")


@contextmanager
def broker(kind: str) -> Iterator[Broker]:
    """Run a broker of `kind` for the length of a `with` block."""
    if kind == "embedded":
        with embedded_broker() as running:
            yield Broker(kind, running.bootstrap)
    else:
        with KafkaServer.prepared() as server:
            server.start()
            try:
                yield Broker(kind, server.bootstrap)
            finally:
                server.stop()


class KafkaServer:
    """An Apache Kafka broker with a data directory of its own, which survives stop and start."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port, controller = _free_ports(2)
        self.bootstrap = f"127.0.0.1:{self.port}"
        template = (_KAFKA / "server.properties").read_text()
        for name, value in (
            ("PORT", self.port),
            ("CONTROLLER_PORT", controller),
            ("LOG_DIR", directory / "data"),
        ):
            template = template.replace(f"${{{name}}}", str(value))
        self._properties = directory / "server.properties"
        self._properties.write_text(template)
        self._running: Guarded | None = None
        formatted = subprocess.run(
            [*_java(), *_FORMAT, "-c", str(self._properties)],
            capture_output=True,
            text=True,
        )
        if formatted.returncode:
            raise KafkaUnavailableError(formatted.stderr or formatted.stdout)

    @classmethod
    @contextmanager
    def prepared(cls) -> Iterator["KafkaServer"]:
        """Yield a formatted, stopped broker; its directory is removed afterwards."""
        _fetch_jars()
        with tempfile.TemporaryDirectory(prefix="ldpstream-kafka-") as directory:
            server = cls(Path(directory))
            try:
                yield server
            finally:
                server.stop()

    def start(self) -> None:
        """Start the broker and wait until it serves clients."""
        self._running = start_guarded(
            [*_java(), "kafka.Kafka", str(self._properties)], environment={}
        )
        wait_until(lambda: _accepts(self.port), f"Kafka on port {self.port}", seconds=60)

    def stop(self) -> None:
        """End the broker at once; what it had on disk stays."""
        if self._running is not None:
            self._running.stop()
            self._running = None


def wait_until(condition: Callable[[], bool], what: str, *, seconds: float = 30.0) -> None:
    """Return as soon as `condition` holds.

    Raises:
        TimeoutError: naming `what` if it does not hold within `seconds`.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds} s for {what}")
        time.sleep(0.05)


def _java() -> list[str]:
    options = ["-Xmx512m", "-XX:+UseSerialGC", "-Dlog4j2.level=ERROR"]
    return ["java", *options, "-cp", str(_KAFKA / "jars" / "*")]


def _fetch_jars() -> None:
    jars = _KAFKA / "jars"
    with (_KAFKA / "pom.xml").open() as lock:
        # Two test runs on one checkout must not copy into each other's directory.
        flock(lock, LOCK_EX)
        if any(jars.glob("kafka_*.jar")):
            return
        copied = subprocess.run(
            ["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={jars}"],
            cwd=_KAFKA,
            capture_output=True,
            text=True,
        )
    if copied.returncode:
        raise KafkaUnavailableError(f"Maven: {copied.stdout[-2000:]}{copied.stderr[-2000:]}")


def _free_ports(count: int) -> list[int]:
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()


def _accepts(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1.0):
            return True
    except OSError:
        return False
