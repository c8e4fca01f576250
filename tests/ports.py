"""Ports for test servers, handed out one after the other.

A free port of the system's ephemeral range may be taken before the server binds it, so these come
from below that range. All test runs of a user share one counter, so that no two get the same port.
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
"""Ephemeral ports begin at 32,768 on Linux and at 49,152 elsewhere, by default."""
_COUNTER: Final = Path(tempfile.gettempdir()) / f"ldpstream-test-ports-{os.getuid()}"


def free_ports(count: int) -> list[int]:
    """Return ports of the loopback interface that nobody listens on.

    Raises:
        RuntimeError: if fewer are free.
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
    """Yield every port once, beginning with `first`."""
    yield from range(first, _LAST + 1)
    yield from range(_FIRST, first)


def _is_free(port: int) -> bool:
    with suppress(OSError), socket.create_server(("127.0.0.1", port)):
        return True
    return False
