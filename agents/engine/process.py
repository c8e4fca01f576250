"""How a command's process runs: until a signal ends it, and with a log of one line an event.

If it fails, it prints one line on standard error. It ends even where libraries do not release their
threads and tasks.
"""

import asyncio
import json
import logging
import os
import signal
import sys
import threading
import traceback
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeVar

from aiokafka.errors import KafkaError

from ldpstream.agents.broker.refusals import BrokerUnavailableError, explain
from ldpstream.agents.config import KafkaConfig
from ldpstream.agents.config.client_options import ClientOptionError
from ldpstream.mechanisms.base.times import format_time

Result = TypeVar("Result")

FORMAT_VARIABLE: Final = "LDPSTREAM_LOG"
"""Where it is `json`, each line is a JSON object; otherwise it is text."""
_TEXT: Final = "%(asctime)s %(levelname)s %(message)s"
# A Faust service logs under the module of its class: ours are in patches.
_NOISY: Final = (
    "aiokafka",
    "faust",
    "mode",
    "asyncio",
    "aiohttp",
    "ldpstream.agents.engine.patches",
)
_CANCEL_SECONDS: Final = 6.0
_LEAVE_SECONDS: Final = 1.0


class HttpUnavailableError(RuntimeError):
    """HTTP cannot be served; the message says where and why."""


class StoppedError(Exception):
    """A signal came before the awaited result."""


def run_and_leave(task: Coroutine[Any, Any, int]) -> int:
    """Run a task on a new event loop and return its result, an exit code.

    While the broker is away Faust does not release its threads and tasks. The process then exits
    here at once, with that code: the task has cleaned up everything of ours.
    """
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    code = loop.run_until_complete(task)
    pending = asyncio.all_tasks(loop)
    for pending_task in pending:
        pending_task.cancel()
    if pending:
        _, pending = loop.run_until_complete(asyncio.wait(pending, timeout=_LEAVE_SECONDS))
    loop.run_until_complete(loop.shutdown_default_executor())
    threads = [t for t in threading.enumerate() if t is not threading.current_thread()]
    if pending or any(thread.is_alive() and not thread.daemon for thread in threads):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    loop.close()
    return code


async def until_signalled(
    run: Callable[[asyncio.Event], Awaitable[int | None]],
    kafka: KafkaConfig,
    *,
    refused: tuple[type[Exception], ...] = (),
) -> int:
    """Run until SIGTERM or SIGINT sets the event passed to `run`, and return an exit code.

    The code is what `run` returns (0 for None), 0 if it raises StoppedError, and 1 if it raises an
    error with a message for the user: about the broker, an address, a client's settings, or one of
    `refused`.
    """
    expected: tuple[type[Exception], ...] = (
        BrokerUnavailableError,
        ClientOptionError,
        HttpUnavailableError,
        *refused,
    )
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    try:
        return await run(stop) or 0
    except StoppedError:
        return 0
    except expected as bad:
        print(bad, file=sys.stderr)
    except KafkaError as error:
        print(await explain(error, kafka), file=sys.stderr)
    return 1


async def unless_stopped(running: Coroutine[Any, Any, Result], stop: asyncio.Event) -> Result:
    """Return what `running` returns; cancel it if `stop` is set first.

    For waits that depend on others: a broker that does not answer, a group's first assignment.
    """
    stopping, task = asyncio.create_task(stop.wait()), asyncio.create_task(running)
    try:
        await asyncio.wait((stopping, task), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
    finally:
        stopping.cancel()
        task.cancel()
    # Gathered, so that an error at the time of the signal is not lost.
    ending = asyncio.gather(task, return_exceptions=True)
    await asyncio.wait((ending,), timeout=_CANCEL_SECONDS)
    raise StoppedError


def announce_ready(url: str) -> None:
    """Print on standard output that a command serves at a URL."""
    print("ready", url, flush=True)


def set_up_logging(*, verbose: bool = False) -> None:
    """Log the worker's own events to stderr, one line each, and silence the libraries.

    The worker itself reports what matters to an operator, such as a broker that does not answer.
    An error that nobody expected is shown with its traceback, once a kind. `verbose` shows
    everything.
    """
    handler = logging.StreamHandler(sys.stderr)
    if not verbose:
        handler.addFilter(_OnceEachKind())
    formatter = _Json if os.environ.get(FORMAT_VARIABLE) == "json" else _OneLine
    handler.setFormatter(formatter(_TEXT, "%Y-%m-%d %H:%M:%S"))
    logging.basicConfig(
        level=logging.DEBUG if verbose else logging.WARNING, handlers=[handler], force=True
    )
    logging.getLogger("ldpstream").setLevel(logging.DEBUG if verbose else logging.INFO)
    for name in _NOISY:
        logging.getLogger(name).setLevel(logging.INFO if verbose else logging.CRITICAL + 1)


class _OnceEachKind(logging.Filter):
    """Drops an unexpected error that has been shown: a page that is open asks every second.

    Two are of one kind if they have the same type and were raised by the same line.
    """

    def __init__(self) -> None:
        super().__init__()
        self._shown: set[tuple[type[BaseException], str, int]] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        if not _is_unexpected(record) or record.exc_info is None:
            return True
        _, error, trace = record.exc_info
        if error is None or trace is None:
            return True
        *_, (frame, line) = traceback.walk_tb(trace)
        kind = type(error), frame.f_code.co_filename, line
        shown = kind in self._shown
        self._shown.add(kind)
        return not shown


def _is_unexpected(record: logging.LogRecord) -> bool:
    """Return whether a message reports an error of this software, with its traceback."""
    ours = record.name.startswith("ldpstream.")
    return ours and record.levelno >= logging.ERROR and bool(record.exc_info)


def _keeps_traceback(record: logging.LogRecord) -> bool:
    return record.levelno == logging.DEBUG or _is_unexpected(record)


class _OneLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        return text if _keeps_traceback(record) else text.splitlines()[0]


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        event = {
            "time": format_time(int(record.created * 1000)),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info and _keeps_traceback(record):
            event["traceback"] = self.formatException(record.exc_info)
        return json.dumps(event, ensure_ascii=False)
