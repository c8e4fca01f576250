"""Restoring logging after a command that sets it up for its whole process."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def logging_restored() -> Iterator[None]:
    """Put the root's handlers and the levels of all loggers back at the end of a block."""
    root = logging.getLogger()
    handlers, levels = root.handlers[:], {one: one.level for one in _loggers()}
    try:
        yield
    finally:
        root.handlers[:] = handlers
        for one in _loggers():
            one.setLevel(levels.get(one, logging.NOTSET))


def _loggers() -> list[logging.Logger]:
    known = logging.root.manager.loggerDict.values()
    return [logging.root, *(one for one in known if isinstance(one, logging.Logger))]
