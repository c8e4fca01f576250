"""A separate process for costly answers, so that they cost the worker neither memory nor speed.

Threads share the interpreter lock: while one of them builds a long list, the event loop waits for
it after every system call. The process runs at low priority, starts with the first costly answer,
and ends after a while without any, or with the worker.
"""

import os
import pickle
import signal
import subprocess
import sys
import time
from contextlib import suppress
from multiprocessing.connection import wait
from typing import BinaryIO, Final, Protocol, TypeAlias

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.web.requests import AnswerError

_NICENESS: Final = 10
_END_SECONDS: Final = 5.0
_PROGRAM: Final = f"from {__name__} import main; main()"


class Work(Protocol):
    """What is computed about a collection, picklable for any thread or process."""

    @property
    def final(self) -> bool:
        """Whether its answer is worth keeping, since it will hardly change."""

    def tag(self, config: CollectionConfig) -> str:
        """Return a hash that identifies the answer, in hexadecimal."""

    def body(self, config: CollectionConfig) -> bytes:
        """Return the answer."""


_Request: TypeAlias = tuple[int, CollectionConfig | None, Work]
"""A collection's number, the collection itself the first time, and what is asked about it."""


class AbortedError(AnswerError):
    """The process gave no answer, for this reason.

    `by_limit`: it took too long, or was killed, as when memory runs out. Another try would be no
    better.
    """

    def __init__(self, reason: str, *, by_limit: bool = False) -> None:
        super().__init__(503, f"the computation was aborted ({reason}): ask for less")
        self.reason = reason
        self.by_limit = by_limit


class AnswerProcess:
    """The worker's side of the process; one answer at a time, in any thread."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._sent_configs: dict[int, CollectionConfig] = {}

    def body(
        self, job: Work, config: CollectionConfig, *, limit_seconds: float | None = None
    ) -> bytes:
        """Return an answer computed by the process; start it if it is not running."""
        begun = time.monotonic()
        try:
            process = self._process = self._process or _start()
        except OSError as error:
            raise AbortedError(f"its process could not be started: {error.strerror}") from error
        requests, answers = process.stdin, process.stdout
        assert requests is not None
        assert answers is not None
        new = None if id(config) in self._sent_configs else config
        self._sent_configs[id(config)] = config
        try:
            # Pickled straight into the pipe: a large collection's tables are not held twice.
            pickle.dump((id(config), new, job), requests, protocol=5)
            requests.flush()
            rest_seconds = (
                None if limit_seconds is None else begun + limit_seconds - time.monotonic()
            )
            if not wait([answers.fileno()], rest_seconds):
                self.end()
                raise AbortedError(f"it takes longer than {limit_seconds:g} s", by_limit=True)
            answer: bytes = pickle.load(answers)  # noqa: S301  (our own process)
        except (EOFError, OSError, ValueError, pickle.UnpicklingError) as error:
            # ValueError: `end` has closed a pipe meanwhile.
            with suppress(subprocess.TimeoutExpired):
                process.wait(_END_SECONDS)
            self.end()
            raise _aborted(process.returncode) from error
        return answer

    def end(self) -> None:
        """End the process, if there is one; a waiting `body` raises AbortedError."""
        process, self._process = self._process, None
        self._sent_configs.clear()
        if process is not None:
            process.kill()
            # Wait first: closing a pipe with unread data would raise BrokenPipeError.
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
        # Keep Ctrl-C from it: the worker ends the process.
        process_group=0,
    )


def _aborted(code: int | None) -> AbortedError:
    """Return the error for a process that ended with a code, negative for a signal."""
    if code is None or code >= 0:
        return AbortedError(f"its process ended with code {code}")
    reason = f"its process was ended by signal {-code}, {signal.strsignal(-code)}"
    return AbortedError(reason, by_limit=-code == signal.SIGKILL)


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer until the other side closes the pipe."""
    configs: dict[int, CollectionConfig] = {}
    while True:
        try:
            request: _Request = pickle.load(requests)  # noqa: S301  (from the worker alone)
        except EOFError:
            return
        number, config, job = request
        if config is not None:
            configs[number] = config
        pickle.dump(job.body(configs[number]), answers, protocol=5)
        answers.flush()


def main() -> None:
    """Answer what arrives on standard input."""
    os.nice(_NICENESS)
    answers = os.fdopen(os.dup(1), "wb")
    # Anything that is printed goes to the log, not between answers.
    os.dup2(2, 1)
    serve(sys.stdin.buffer, answers)
