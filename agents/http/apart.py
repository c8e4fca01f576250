"""A process of its own for costly answers, so that they cost the worker neither memory nor pace.

Threads of one process share its interpreter: while one of them composes a long list, the event loop
waits for it after every system call. The process runs at low priority, starts with the first costly
answer, and ends when there has been none for a while, or with the worker.
"""

import os
import subprocess
import sys
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from typing import Final, TypeAlias

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.http.job import Job

_NICENESS: Final = 10
_END_SECONDS: Final = 5.0
_PROGRAM: Final = f"from {__name__} import main; main()"

_Asked: TypeAlias = tuple[int, CollectionConfig | None, Job]
"""A number for a collection, the collection where it is new, and what is asked about it."""


class EndedError(RuntimeError):
    """The process ended before it had an answer."""


class AnswerProcess:
    """The process as the worker sees it; one answer at a time, in any thread."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._told: dict[int, CollectionConfig] = {}

    def body(self, config: CollectionConfig, job: Job) -> bytes:
        """Return an answer, computed by the process, which is started if there is none.

        Raises:
            EndedError: where the process ends meanwhile, as where the system has no memory left.
        """
        connection = self._connection or self._start()
        new = None if id(config) in self._told else config
        self._told[id(config)] = config
        try:
            connection.send((id(config), new, job))
            answer: bytes = connection.recv_bytes()
        except (EOFError, OSError) as error:
            self.end()
            raise EndedError from error
        return answer

    def end(self) -> None:
        """End the process, if there is one; whoever waits for an answer is told so."""
        process, connection = self._process, self._connection
        self._process = self._connection = None
        self._told.clear()
        if process is not None and connection is not None:
            process.kill()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_END_SECONDS)
            connection.close()

    def _start(self) -> Connection:
        ours, theirs = Pipe()
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603  (our own module)
                [sys.executable, "-c", _PROGRAM, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                # Ctrl-C is the worker's, which ends the process.
                process_group=0,
            )
        self._connection = ours
        return ours


def serve(connection: Connection) -> None:
    """Answer until the other side has gone."""
    known: dict[int, CollectionConfig] = {}
    while True:
        try:
            asked: _Asked = connection.recv()
        except EOFError:
            return
        number, config, job = asked
        if config is not None:
            known[number] = config
        connection.send_bytes(job.body(known[number]))


def main() -> None:
    """Serve the connection whose descriptor the first argument is."""
    os.nice(_NICENESS)
    serve(Connection(int(sys.argv[1])))
