"""Running a part of a benchmark in a process of its own, so that its failure ends nothing else."""

import multiprocessing
import os
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import TypeVar

_LEAVE_SECONDS = 60.0

Found = TypeVar("Found")


class PartFailedError(RuntimeError):
    """A part raised, crashed or took too long; it has printed the traceback itself."""


def apart(part: Callable[..., Found], *arguments: object, seconds: float) -> Found:
    """Return what a function returns in a fresh process, within this many seconds.

    Raises:
        PartFailedError: if it does not.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(sender, part, arguments))
    process.start()
    sender.close()
    try:
        if not receiver.poll(seconds):
            raise PartFailedError(f"{part.__name__} was not done in {seconds:g} s")
        found: Found = receiver.recv()
        process.join(_LEAVE_SECONDS)
    except EOFError:
        raise PartFailedError(f"{part.__name__} failed; its last words are above") from None
    finally:
        if process.is_alive() and process.pid is not None:
            # SIGINT, so that the part ends the processes that it has started.
            os.kill(process.pid, signal.SIGINT)
            process.join(_LEAVE_SECONDS)
        process.kill()
        process.join()
    return found


def _run(sender: Connection, part: Callable[..., object], arguments: tuple[object, ...]) -> None:
    # A process started in a shell's background ignores interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sender.send(part(*arguments))
