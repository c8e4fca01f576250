"""Ctrl-C while a command reads its input on an event loop."""

import asyncio
import signal
from collections.abc import Iterator

import pytest

from ldpstream.agents.cli.terminal.broker import interruptibly


def interrupted_reads() -> Iterator[int]:
    """Two reads, with a SIGINT during the second one."""
    yield 1
    signal.raise_signal(signal.SIGINT)
    yield 2


async def read(reached: list[int]) -> None:
    for item in interruptibly(interrupted_reads()):
        reached.append(item)


def test_ctrl_c_ends_a_read_at_once():
    # A shell that runs the tests in the background starts them with SIGINT ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    reached: list[int] = []
    try:
        with pytest.raises(KeyboardInterrupt):
            asyncio.run(read(reached))
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert reached == [1]


def test_a_process_that_ignores_ctrl_c_goes_on():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    reached: list[int] = []
    try:
        asyncio.run(read(reached))
    finally:
        signal.signal(signal.SIGINT, before)
    assert reached == [1, 2]


def test_between_reads_the_former_handler_is_installed():
    before = signal.getsignal(signal.SIGINT)
    assert [signal.getsignal(signal.SIGINT) for _ in interruptibly([1, 2])] == [before, before]
