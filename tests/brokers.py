"""Brokers for tests: the embedded one, and Apache Kafka in KRaft mode (needs Java and Maven).

With LDPSTREAM_REQUIRE_ALL=1, tests that need Kafka fail where it cannot run; otherwise they are
skipped there.
"""

import hashlib
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from fcntl import LOCK_EX, flock
from functools import cache
from pathlib import Path
from typing import Any

from ldpstream.agents.broker.embedded import Guarded, embedded_broker, start_guarded
from tests import missing
from tests.java import CLASSES, KAFKA, java, keep_classes
from tests.ports import free_ports

KINDS = ("embedded", "kafka")
_FORMAT = ("kafka.tools.StorageTool", "format", "-t", "bGRwc3RyZWFtLXRlc3RzMQ")


class KafkaUnavailableError(RuntimeError):
    """Apache Kafka cannot run here; the message says why."""


@dataclass(frozen=True)
class Broker:
    """A running broker of one kind."""

    kind: str
    bootstrap: str
    security: Mapping[str, object] = field(default_factory=dict)
    """Client settings that its listener requires, as in `[kafka]`."""

    @property
    def options(self) -> dict[str, object]:
        """Client settings that this broker needs beyond its address, as in `[kafka]`."""
        known = {"enable_idempotence": False} if self.kind == "embedded" else {}
        return {**known, **self.security}


@cache
def why_no_kafka() -> str | None:
    """Return why Apache Kafka cannot run here, or None if it can."""
    for tool, package in (("java", "openjdk-17-jdk-headless"), ("mvn", "maven")):
        if shutil.which(tool) is None:
            return f"{tool} is not on the PATH; on Debian: apt-get install {package}"
    shown = subprocess.run(["java", "-version"], capture_output=True, text=True).stderr
    version = re.search(r'version "(\d+)', shown)
    if version is None or int(version[1]) < 17:
        return "it needs Java 17; on Debian: apt-get install openjdk-17-jdk-headless"
    try:
        fetch_jars()
    except KafkaUnavailableError as error:
        return str(error)
    return None


def skip_without_kafka() -> None:
    """Skip the calling test where Kafka cannot run, or fail it where Kafka is required."""
    reason = why_no_kafka()
    if reason is not None:
        missing.skip(f"Apache Kafka: {reason}")


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
    """An Apache Kafka broker with a data directory of its own, which survives stop and start.

    `settings` are added to those of docker/kafka/server.properties, or replace them; `users` get
    SCRAM credentials: `MECHANISM=[name=NAME,password=PASSWORD]`. `listeners` adds plaintext
    listeners by name, each with the port it binds and the port it advertises.
    """

    def __init__(
        self,
        directory: Path,
        *,
        settings: Mapping[str, object] | None = None,
        users: Sequence[str] = (),
        listeners: Mapping[str, tuple[int, int]] | None = None,
        heap: str = "-Xmx512m",
    ) -> None:
        self.directory = directory
        self._heap = heap
        added = dict(settings or {})
        self.port = int(str(added.pop("PORT", 0))) or free_ports(1)[0]
        controller = int(str(added.pop("CONTROLLER_PORT", 0))) or free_ports(1)[0]
        self.bootstrap = f"127.0.0.1:{self.port}"
        if listeners:
            added |= _listeners(self.port, controller, listeners)
        template = (KAFKA / "server.properties").read_text()
        for name, value in (
            ("PORT", self.port),
            ("CONTROLLER_PORT", controller),
            ("LOG_DIR", directory / "data"),
        ):
            template = template.replace(f"${{{name}}}", str(value))
        # Where a name is set twice, the last line wins.
        template += "".join(f"{name}={value}\n" for name, value in added.items())
        self._properties = directory / "server.properties"
        self._properties.write_text(template)
        self._running: Guarded | None = None
        scram = [word for user in users for word in ("--add-scram", user)]
        empty = KAFKA / "jars" / f"formatted-{added.get('node.id', 1)}-{_digest(scram)}"
        with _one_at_a_time():
            if not empty.exists():
                # Kept next to the jars: formatting starts a JVM of its own.
                formatted = subprocess.run(
                    [*java(heap), *_FORMAT, "-c", str(self._properties), *scram],
                    capture_output=True,
                    text=True,
                )
                if formatted.returncode:
                    raise KafkaUnavailableError(formatted.stderr or formatted.stdout)
                (directory / "data").rename(directory / "empty")
                shutil.copytree(directory / "empty", empty.with_suffix(".new"), dirs_exist_ok=True)
                empty.with_suffix(".new").rename(empty)
        shutil.copytree(empty, directory / "data")

    @classmethod
    @contextmanager
    def prepared(cls, **options: Any) -> Iterator["KafkaServer"]:
        """Yield a formatted, stopped broker; its directory is removed afterwards."""
        fetch_jars()
        _archive_classes()
        with tempfile.TemporaryDirectory(prefix="ldpstream-kafka-") as directory:
            server = cls(Path(directory), **options)
            try:
                yield server
            finally:
                server.stop()

    def start(self) -> None:
        """Start the broker and wait until it serves clients."""
        self.launch()
        self.await_serving()

    def launch(self) -> None:
        """Start the broker without waiting for it."""
        # Kafka reports errors on standard output.
        to_stderr = ["/bin/sh", "-c", 'exec "$@" >&2', "kafka"]
        self._running = start_guarded(
            [*to_stderr, *java(self._heap), "kafka.Kafka", str(self._properties)], environment={}
        )

    def await_serving(self) -> None:
        """Wait until the broker serves clients.

        Raises:
            KafkaUnavailableError: with its output, if it exits or does not serve in two minutes.
        """
        started = self._running
        assert started is not None
        with suppress(TimeoutError):
            wait_until(
                lambda: accepts(self.port) or not started.running,
                f"Kafka on port {self.port}",
                seconds=120,
            )
        if not (started.running and accepts(self.port)):
            raise KafkaUnavailableError(
                f"Kafka does not serve port {self.port}; it said: {started.output()[-3000:]}"
            )

    @property
    def running(self) -> Guarded | None:
        """The process, None while the broker is stopped."""
        return self._running

    def stop(self) -> None:
        """End the broker at once, as kill -9 does; its data directory stays."""
        if self._running is not None:
            self._running.stop()
            self._running = None


def _listeners(port: int, controller: int, more: Mapping[str, tuple[int, int]]) -> dict[str, str]:
    first, address = f"PLAINTEXT://127.0.0.1:{port}", "127.0.0.1"
    bound = [f"{name}://{address}:{inside}" for name, (inside, _) in more.items()]
    advertised = [f"{name}://{address}:{outside}" for name, (_, outside) in more.items()]
    names = ["PLAINTEXT", "CONTROLLER", *more]
    return {
        "listeners": ",".join([first, *bound, f"CONTROLLER://{address}:{controller}"]),
        "advertised.listeners": ",".join([first, *advertised]),
        "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in names),
    }


def wait_until(condition: Callable[[], bool], what: str, *, seconds: float = 120.0) -> None:
    """Return as soon as `condition` holds.

    Raises:
        TimeoutError: naming `what` if it does not hold within `seconds`.
    """
    began = time.monotonic()
    while not condition():
        waited_seconds = time.monotonic() - began
        if waited_seconds > seconds:
            raise TimeoutError(f"waited {seconds} s for {what}")
        time.sleep(pause_seconds(waited_seconds))


def pause_seconds(waited_seconds: float) -> float:
    """Return when to look again: a tenth later, since a look may be a request or a command."""
    return min(0.2, max(0.02, 0.1 * waited_seconds))


def _archive_classes() -> None:
    """Have Java archive a broker's classes, which halves the start of every later one."""
    with (KAFKA / "server.properties").open() as lock:
        flock(lock, LOCK_EX)
        if not CLASSES.exists():
            with tempfile.TemporaryDirectory(prefix="ldpstream-kafka-") as folder:
                server = KafkaServer(Path(folder))
                keep_classes(server._properties, lambda: accepts(server.port))


def _digest(words: Sequence[str]) -> str:
    """Return a name for a formatted data directory, from the options and Kafka's version."""
    versions = sorted(jar.name for jar in (KAFKA / "jars").glob("kafka_*.jar"))
    return hashlib.sha256("\0".join([*versions, *_FORMAT, *words]).encode()).hexdigest()[:16]


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Lock the folder of jars against other test processes."""
    with (KAFKA / "pom.xml").open() as lock:
        flock(lock, LOCK_EX)
        yield


def fetch_jars() -> None:
    """Fetch Kafka's jars with Maven, unless they are here.

    Raises:
        KafkaUnavailableError: if Maven cannot fetch them.
    """
    jars = KAFKA / "jars"
    with _one_at_a_time():
        if any(jars.glob("kafka_*.jar")):
            return
        copied = subprocess.run(
            ["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={jars}"],
            cwd=KAFKA,
            capture_output=True,
            text=True,
        )
    if copied.returncode:
        said = " ".join(f"{copied.stdout} {copied.stderr}".split())
        raise KafkaUnavailableError(
            "Maven cannot fetch its jars: connect this machine to Maven's central repository, or "
            f"name a mirror in ~/.m2/settings.xml. It said: {said[:600]}"
        )


def accepts(port: int) -> bool:
    """Return whether something listens at a port of this machine."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1.0):
            return True
    except OSError:
        return False
