"""A device is killed at every moment between draw and send: a window never gets a second report."""

import random
import signal
import time
from pathlib import Path

import pytest

from ldpstream.mechanisms.ledger import Ledger
from tests.exact.ledgers import HOUR_MS, START_MS, spec
from tests.forked import Forked

pytestmark = pytest.mark.crash

_SPEC = """
import os, signal, sqlite3, sys
from tests.exact.ledgers import HOUR_MS, START_MS, spec
from ldpstream.mechanisms.ledger import Ledger
modes, path = spec(epsilon=0.001), sys.argv[1]
"""
# Prints the report of one window after the other.
_DEVICE = (
    _SPEC
    + """
with Ledger(path, specs=[(modes, HOUR_MS)], budget=10**6) as ledger:
    for hour in range(1_000_000):
        release = ledger.release(modes, "bus", time_ms=START_MS + hour * HOUR_MS)
        print(hour, release.payload.tobytes().hex(), release.time_ms, flush=True)
"""
)
# Kills itself before the n-th statement that the file sees, or after all of them.
_AT_A_STATEMENT = (
    _SPEC
    + """
ledger = Ledger(path, specs=[(modes, HOUR_MS)], budget=10**6)
left = int(sys.argv[2])
def count(statement):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
ledger._store._db.set_trace_callback(count)
release = ledger.release(modes, "bus", time_ms=START_MS)
print(release.payload.tobytes().hex(), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
)


def run(code: str, *arguments: str) -> Forked:
    """Start a device, which has imported what it needs."""
    return Forked(arguments, stderr=2, program=code)


def test_killed_at_random_moments_no_window_has_two_reports(tmp_path: Path):
    rng, path = random.Random(5), str(tmp_path / "ledger")
    seen: dict[str, set[tuple[str, ...]]] = {}
    for _ in range(6):
        device = run(_DEVICE, path)
        assert device.stdout is not None
        with device.stdout:
            lines = [device.stdout.readline().decode() for _ in range(rng.randint(1, 40))]
            # Wherever it is by now: between two lines, or in the middle of one.
            time.sleep(rng.uniform(0, 0.02))
            device.kill()
            lines += [line.decode() for line in device.stdout]
        assert device.wait() == -signal.SIGKILL
        for line in lines:
            if line.endswith("\n"):
                hour, *content = line.split()
                seen.setdefault(hour, set()).add(tuple(content))
    assert len(seen) > 10
    assert all(len(contents) == 1 for contents in seen.values())
    modes = spec(epsilon=0.001)
    with Ledger(path, specs=[(modes, HOUR_MS)], budget=10**6) as ledger:
        # What left is charged; at most one more had been drawn and not yet printed.
        assert len(seen) <= len(ledger.spent().windows) <= len(seen) + 6
        for hour, contents in seen.items():
            kept = ledger.release(modes, "walk", time_ms=START_MS + int(hour) * HOUR_MS)
            assert contents == {(kept.payload.tobytes().hex(), str(kept.time_ms))}


def test_killed_at_every_statement_what_left_is_what_stays(tmp_path: Path):
    """Before the commit nothing has left; after it, the same report leaves again."""
    printed = []
    for statement in range(1, 20):
        path = str(tmp_path / f"ledger{statement}")
        before = leave(path, statement)
        modes = spec(epsilon=0.001)
        with Ledger(path, specs=[(modes, HOUR_MS)], budget=1) as ledger:
            after = ledger.release(modes, "train", time_ms=START_MS).payload.tobytes().hex()
            assert len(ledger.spent().windows) == 1
        assert before in {"", after}
        printed.append(before)
        if before:
            break
    # It was killed at more than the begin, the insert and the commit, and in the end not at all.
    assert printed[-1] != ""
    assert len(printed) > 5


def leave(path: str, statement: int) -> str:
    device = run(_AT_A_STATEMENT, path, str(statement))
    assert device.stdout is not None
    with device.stdout:
        said = device.stdout.read().decode()
    assert device.wait() == -signal.SIGKILL
    return said.strip()
