"""A process of its own for costly answers, so that they cost the worker neither memory nor pace.

Threads of one process share its interpreter: while one of them builds a long list, the event loop
waits for it after every system call. The process runs at low priority, starts with the first costly
answer, and ends when there has been none for a while, or with the worker.
"""

import os
import pickle
import subprocess
import sys
from contextlib import suppress
from typing import BinaryIO, Final, TypeAlias

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
        self._told: dict[int, CollectionConfig] = {}

    def body(self, config: CollectionConfig, job: Job) -> bytes:
        """Return an answer, computed by the process, which is started if there is none.

        Raises:
            EndedError: where the process ends meanwhile, as where the system has no memory left.
        """
        if self._process is None:
            self._process = _start()
        asked, answers = self._process.stdin, self._process.stdout
        assert asked is not None
        assert answers is not None
        new = None if id(config) in self._told else config
        self._told[id(config)] = config
        try:
            # Written as it is pickled: a large collection's tables are not held twice.
            pickle.dump((id(config), new, job), asked, protocol=5)
            asked.flush()
            answer: bytes = pickle.load(answers)  # noqa: S301  (our own process)
        except (EOFError, OSError, ValueError, pickle.UnpicklingError) as error:
            # ValueError: of a file that `end` has closed meanwhile.
            self.end()
            raise EndedError from error
        return answer

    def end(self) -> None:
        """End the process, if there is one; whoever waits for an answer is told so."""
        process, self._process = self._process, None
        self._told.clear()
        if process is not None:
            process.kill()
            # Waited for first: a question that was not taken breaks the pipe when it is closed.
            with suppress(subprocess.TimeoutExpired):
                process.wait(_END_SECONDS)
            for pipe in (process.stdin, process.stdout):
                with suppress(BrokenPipeError):
                    assert pipe is not None
                    pipe.close()


def _start() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(  # noqa: S603  (our own module)
        [sys.executable, "-c", _PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # Ctrl-C is the worker's, which ends the process.
        process_group=0,
    )


def serve(asked: BinaryIO, answers: BinaryIO) -> None:
    """Answer until the other side has gone."""
    known: dict[int, CollectionConfig] = {}
    while True:
        try:
            one: _Asked = pickle.load(asked)  # noqa: S301  (from the worker alone)
        except EOFError:
            return
        number, config, job = one
        if config is not None:
            known[number] = config
        pickle.dump(job.body(known[number]), answers, protocol=5)
        answers.flush()


def main() -> None:
    """Serve what comes on standard input."""
    os.nice(_NICENESS)
    answers = os.fdopen(os.dup(1), "wb")
    # Whatever else is printed belongs to the log.
    os.dup2(2, 1)
    serve(sys.stdin.buffer, answers)
