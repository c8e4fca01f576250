"""Orders to the server of `tests/forked.py`; as a program, what a shell runs as `ldpstream`.

`python forked_client.py ADDRESS ARGUMENTS` is `ldpstream ARGUMENTS`, forked from the server:
with the standard streams, folder and environment of this process, and ended as this process is.
"""

import contextlib
import json
import os
import signal
import socket
import struct
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

MAIN = "from ldpstream.agents.cli.main import main; main()"
"""What `ldpstream` runs."""
_NUMBER = struct.Struct("i")


def order(
    address: str,
    arguments: Sequence[str],
    streams: Sequence[int],
    *,
    folder: str,
    environment: Mapping[str, str],
    program: str = MAIN,
    strict: bool = False,
) -> socket.socket:
    """Order `python -c PROGRAM ARGUMENTS`, with `-W error` if `strict`, and return the connection.

    The connection yields the process's id and then its exit code; closing it kills the process.
    """
    said = json.dumps([list(arguments), folder, dict(environment), program, strict]).encode()
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    server.connect("\0" + address)
    socket.send_fds(server, [said], list(streams))
    return server


def read(server: socket.socket) -> int:
    """Return the next number from the server."""
    said = server.recv(_NUMBER.size)
    assert len(said) == _NUMBER.size, "the fork server has exited"
    return int(_NUMBER.unpack(said)[0])


def say(client: socket.socket, number: int) -> None:
    """Send a number, unless the client is gone."""
    with contextlib.suppress(BrokenPipeError):
        client.send(_NUMBER.pack(number))


def main(address: str, *arguments: str) -> None:
    """Run `ldpstream ARGUMENTS` and end as it does."""
    server = order(address, arguments, [0, 1, 2], folder=str(Path.cwd()), environment=os.environ)
    pid = read(server)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda one, _: os.kill(pid, one))
    # The forked program alone holds the pipes, so that it notices when a reader goes away.
    for stream in (0, 1, 2):
        os.close(stream)
    code = read(server)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main(*sys.argv[1:])
