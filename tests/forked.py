"""Programs that start at once, forked from a server that has imported what they run.

Started the usual way, a worker spends two seconds of CPU on imports, more than most tests take
otherwise. Each test process has one server that imports everything and forks whatever is started,
as a process with its own descriptors, environment and exit code. `LD_PRELOAD` has to act from the
first instruction, so it needs a process that is started the usual way.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import select
import shlex
import signal
import socket
import subprocess
import sys
import threading
import uuid
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Final, Self

from tests import forked_client
from tests.forked_client import MAIN
from tests.seeded import seed_system

__all__ = ["MAIN", "Forked", "run", "script", "start"]
_IMPORTED: Final = (
    *("ldpstream.agents.worker", "ldpstream.agents.edge.gateway_process"),
    *("ldpstream.agents.cli.plans.command", "ldpstream.agents.web.worker_process"),
    # Faust imports these by name once an app is made.
    *("faust.app.router", "faust.fixups.django", "faust.tables.manager", "faust.tables.recovery"),
    *("faust.tables.objects", "faust.tables.sets", "faust.topics", "faust.windows"),
    *("faust.worker", "mode.worker"),
)
_ORDER_BYTES: Final = 1 << 20
_SERVER: Final = "import sys; from tests.forked import serve; serve(*map(int, sys.argv[1:]))"


class Forked:
    """A process forked by the server, with the part of `subprocess.Popen` that tests use.

    `stdin`, `stdout` and `stderr` are PIPE, a descriptor or a file.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        stdin: int | IO[bytes] = 0,
        stdout: int | IO[bytes] = subprocess.PIPE,
        stderr: int | IO[bytes] = subprocess.PIPE,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
        program: str = MAIN,
        strict: bool = False,
    ) -> None:
        """Run `python -c PROGRAM ARGUMENTS`, with `-W error` if `strict`."""
        self.args = [sys.executable, "-c", program, *arguments]
        self.returncode: int | None = None
        streams, theirs = [], []
        for number, given in enumerate((stdin, stdout, stderr)):
            stream: IO[bytes] | None = None
            if given == subprocess.PIPE:
                ends = os.pipe()
                stream = os.fdopen(ends[number == 0], "wb" if number == 0 else "rb")
                theirs.append(ends[number != 0])
            else:
                theirs.append(os.dup(given if isinstance(given, int) else given.fileno()))
            streams.append(stream)
        self.stdin, self.stdout, self.stderr = streams
        self._server = forked_client.order(
            _server(),
            arguments,
            theirs,
            folder=str(folder or Path.cwd()),
            environment=os.environ if environment is None else environment,
            program=program,
            strict=strict,
        )
        for descriptor in theirs:
            os.close(descriptor)
        self.pid = forked_client.read(self._server)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the pipes and wait for the process to exit."""
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                stream.close()
        self.wait()

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal, or None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(timeout=0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the exit code; raises TimeoutExpired as `subprocess.Popen` does."""
        if self.returncode is None:
            if not select.select([self._server], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
            self.returncode = forked_client.read(self._server)
            self._server.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has exited."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill the process, unless it has exited."""
        self.send_signal(signal.SIGKILL)


def start(
    arguments: Sequence[str],
    *,
    environment: Mapping[str, str],
    stderr: int | IO[bytes] = subprocess.PIPE,
    program: str = MAIN,
) -> "subprocess.Popen[bytes] | Forked":
    """Start `python -c PROGRAM ARGUMENTS`, forked unless the environment has `LD_PRELOAD`."""
    if "LD_PRELOAD" not in environment:
        return Forked(arguments, stderr=stderr, environment=environment, program=program)
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, env=environment)


def run(
    arguments: Sequence[str],
    *,
    stdin: bytes = b"",
    stdout: int | IO[bytes] | None = None,
    seconds: float | None = None,
    **options: Any,
) -> "subprocess.CompletedProcess[bytes]":
    """Run to the end, as `subprocess.run` does with `capture_output`; `options` as for `Forked`."""
    with TemporaryFile() as out, TemporaryFile() as errors:
        process = Forked(
            arguments, stdin=subprocess.PIPE, stdout=stdout or out, stderr=errors, **options
        )
        feeding = threading.Thread(target=_feed, args=(process.stdin, stdin))
        feeding.start()
        try:
            code = process.wait(seconds)
        finally:
            process.kill()
            feeding.join()
        said = []
        for file in (out, errors):
            file.seek(0)
            said.append(file.read())
    return subprocess.CompletedProcess(process.args, code, *said)


def _feed(stream: IO[bytes], content: bytes) -> None:
    with contextlib.suppress(BrokenPipeError), stream:
        stream.write(content)


def script() -> str:
    """Return a shell script that runs `ldpstream` with its arguments, forked."""
    client = [sys.executable, "-I", "-S", str(Path(forked_client.__file__)), _server()]
    return f'#!/bin/sh\nexec {shlex.join(client)} "$@"\n'


@cache
def _server() -> str:
    """Start the server, which ends when this process does, and return its address."""
    address = f"ldpstream-tests-{uuid.uuid4().hex}"
    # Threads do not survive a fork.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    ends, end = os.pipe()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind("\0" + address)
        listening.listen(64)
        passed = (listening.fileno(), ends)
        command = [sys.executable, "-c", _SERVER, *map(str, passed)]
        process = subprocess.Popen(
            command, env=environment, pass_fds=passed, stdin=subprocess.DEVNULL
        )
    os.close(ends)

    def stop() -> None:
        os.close(end)
        process.wait()

    atexit.register(stop)
    return address


def serve(listening: int, ends: int) -> None:
    """Fork a process for every order, until the other end of `ends` is closed."""
    from ldpstream.agents.cli.main import COMMANDS, find_command
    from ldpstream.agents.web.operations import describe_api

    for name in _IMPORTED:
        importlib.import_module(name)
    for command in COMMANDS:
        find_command(command)
    describe_api()
    assert threading.active_count() == 1
    gc.freeze()
    # Nothing waits for the processes in between, which wait for the programs.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    server = socket.socket(fileno=listening)
    started: Counter[str] = Counter()
    while ends not in select.select([server, ends], [], [])[0]:
        client, _ = server.accept()
        said, streams, *_ = socket.recv_fds(client, _ORDER_BYTES, 3)
        order = json.loads(said)
        # As pytest names it, without the phase; programs of one test draw different noise.
        test = order[2].get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
        started[test] += 1
        if os.fork() == 0:
            server.close()
            os.close(ends)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _run(client, order, streams, noise=f"{test} {started[test]}")
            return
        for one in (client.detach(), *streams):
            os.close(one)


def _run(
    client: socket.socket, order: Sequence[Any], streams: Sequence[int], *, noise: str
) -> None:
    """Fork the program of an order, its noise seeded by a name; send its id and its exit code."""
    pid = os.fork()
    if pid:
        for descriptor in (0, 1, 2, *streams):
            with contextlib.suppress(OSError):
                os.close(descriptor)
        forked_client.say(client, pid)
        # A client that is killed takes its program with it.
        if client in select.select([client, ended := os.pidfd_open(pid)], [], [])[0]:
            os.kill(pid, signal.SIGKILL)
        os.close(ended)
        forked_client.say(client, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        os._exit(0)
    client.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(
        2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False
    )
    arguments, folder, environment, program, strict = order
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = ["-c", *arguments]
    seed_system(noise)
    if strict:
        warnings.simplefilter("error")
    exec(program, {"__name__": "__main__"})
