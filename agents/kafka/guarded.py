"""A child process that cannot outlive its parent, however the parent ends."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

# The shell holds the read end of a pipe whose only write end is the parent's. It reads end of file
# when the parent stops the child, exits, or is killed. Unlike PR_SET_PDEATHSIG this works on every
# POSIX system, whichever thread of the parent started the child.
_GUARD = """
exec 3<&0
"$@" </dev/null &
child=$!
{ read -r _ <&3; kill -9 $child; } &
guard=$!
wait $child
code=$?
kill $guard 2>/dev/null
exit $code
"""


@dataclass(frozen=True)
class Guarded:
    """A running child, in a session of its own so that Ctrl-C reaches only the parent."""

    process: subprocess.Popen[bytes]
    log: IO[bytes]

    @property
    def running(self) -> bool:
        """Whether the child still runs."""
        return self.process.poll() is None

    def output(self) -> str:
        """Return what the child has written to its standard error so far."""
        self.log.seek(0)
        return self.log.read().decode(errors="replace").strip()

    def stop(self) -> None:
        """Kill the child and everything that it started; does nothing if it has ended already."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        # The guard now kills the child and waits for it; the child's own children may be left.
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=5.0)
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.log.close()


def start_guarded(command: Sequence[str], *, environment: Mapping[str, str]) -> Guarded:
    """Start `command` with `environment` added to the parent's.

    Its standard output is dropped; its standard error goes to an unnamed temporary file.
    """
    log = tempfile.TemporaryFile()  # noqa: SIM115 (closed by stop(), long after this function)
    process = subprocess.Popen(  # noqa: S603 (the command is the caller's own, and no shell parses it)
        ["/bin/sh", "-c", _GUARD, "guard", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=log,
        env={**os.environ, **environment},
        start_new_session=True,
    )
    return Guarded(process, log)
