"""Ports for servers of tests, given out one after the other.

The system draws the ports of connections, and of servers that ask for any, from a range of its own.
A port of that range that was free a moment ago may be taken when the server starts, so these are
from below it; and all test runs of a user count on in one file, so that no two are given the same.
"""

import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import Final

_FIRST: Final = 15_000
_LAST: Final = 32_767
"""Linux's own begin at 32,768, those of other systems at 49,152, unless somebody has changed it."""
_COUNTER: Final = Path(tempfile.gettempdir()) / f"ldpstream-test-ports-{os.getuid()}"


def free_ports(count: int) -> list[int]:
    """Return ports of the loopback interface that nobody listens on.

    Raises:
        RuntimeError: if there are not as many.
    """
    found: list[int] = []
    with _COUNTER.open("a+") as counter:
        flock(counter, LOCK_EX)
        counter.seek(0)
        for port in _from(int(counter.read() or _FIRST)):
            if len(found) == count:
                counter.truncate(0)
                counter.write(str(port))
                return found
            if _is_free(port):
                found.append(port)
    raise RuntimeError(f"fewer than {count} ports are free from {_FIRST} to {_LAST}")


def _from(first: int) -> Iterator[int]:
    """Yield every port once, from one of them on."""
    yield from range(first, _LAST + 1)
    yield from range(_FIRST, first)


def _is_free(port: int) -> bool:
    with suppress(OSError), socket.create_server(("127.0.0.1", port)):
        return True
    return False
