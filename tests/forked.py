"""Processes of commands that start at once: forked from one that has imported what they run.

A worker that is started the usual way spends two seconds of a core on imports, more than most tests
need otherwise. Here one process for each process of tests imports everything, and forks whatever is
started; what is forked is a process of its own as any other, with its own descriptors, environment
and end. What has to be there from the first instruction on (`LD_PRELOAD`) needs a process that is
started the usual way.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Final

_IMPORTED: Final = ("worker", "cli.worker", "cli.pack", "packing.run", "cli.gateway", "gateway.run")
_NUMBER: Final = struct.Struct("i")
_ORDER_BYTES: Final = 1 << 20
_SERVER: Final = "import sys; from tests.forked import serve; serve(int(sys.argv[1]))"
_sending = threading.Lock()


class Forked:
    """What `subprocess.Popen` is to tests, for a process that was forked by the server."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        stderr: int | IO[bytes],
        environment: Mapping[str, str],
    ) -> None:
        """Run `ldpstream ARGUMENTS`; `stderr` is as for `subprocess.Popen`."""
        self.args = [sys.executable, "-c", "forked", *arguments]
        self.returncode: int | None = None
        read_out, write_out = os.pipe()
        self._status, write_status = os.pipe()
        self.stdout: IO[bytes] | None = os.fdopen(read_out, "rb")
        self.stderr: IO[bytes] | None = None
        ours = [write_out, write_status]
        if stderr == subprocess.PIPE:
            read_error, errors = os.pipe()
            self.stderr = os.fdopen(read_error, "rb")
            ours.append(errors)
        else:
            errors = stderr if isinstance(stderr, int) else stderr.fileno()
        order = {
            "arguments": list(arguments),
            "folder": str(Path.cwd()),
            "environment": dict(environment),
        }
        with _sending:
            socket.send_fds(
                _server(), [json.dumps(order).encode()], [write_out, errors, write_status]
            )
        for descriptor in ours:
            os.close(descriptor)
        self.pid = self._read()

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal, or None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(timeout=0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end and return the exit code; TimeoutExpired as for `subprocess.Popen`."""
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
            self.returncode = self._read()
            os.close(self._status)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once, unless it has ended."""
        self.send_signal(signal.SIGKILL)

    def _read(self) -> int:
        said = os.read(self._status, _NUMBER.size)
        assert len(said) == _NUMBER.size, "the server of forks has ended"
        return int(_NUMBER.unpack(said)[0])


@cache
def _server() -> socket.socket:
    """Start the server; it ends when this process does."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    # Threads do not survive a fork.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", _SERVER, str(theirs.fileno())]
    process = subprocess.Popen(command, env=environment, pass_fds=[theirs.fileno()])
    theirs.close()

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


def serve(descriptor: int) -> None:
    """Fork a process for every order that comes in, until nobody is left to order any."""
    for name in _IMPORTED:
        importlib.import_module(f"ldpstream.agents.{name}")
    assert threading.active_count() == 1
    gc.freeze()
    # Nobody waits for those that wait for the forked.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    orders = socket.socket(fileno=descriptor)
    while True:
        order, descriptors, *_ = socket.recv_fds(orders, _ORDER_BYTES, 3)
        if not order:
            return
        if os.fork() == 0:
            orders.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _run(json.loads(order), *descriptors)
            return
        for one in descriptors:
            os.close(one)


def _run(order: dict[str, object], out: int, errors: int, status: int) -> None:
    """Fork what was ordered, and tell of its id and of its end."""
    pid = os.fork()
    if pid:
        for descriptor in (0, 1, 2, out, errors):
            with contextlib.suppress(OSError):
                os.close(descriptor)
        with contextlib.suppress(BrokenPipeError):
            os.write(status, _NUMBER.pack(pid))
            ended = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            os.write(status, _NUMBER.pack(ended))
        os._exit(0)
    os.close(status)
    os.dup2(out, 1)
    os.dup2(errors, 2)
    os.close(out)
    os.close(errors)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(
        2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False
    )
    environment, arguments = order["environment"], order["arguments"]
    assert isinstance(environment, dict)
    assert isinstance(arguments, list)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(str(order["folder"]))
    from ldpstream.agents.cli.main import main

    sys.argv = ["ldpstream", *arguments]
    main(arguments)
