"""Several holders of one ledger: one after the other, at once, and in each other's way."""

import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import pytest

from ldpstream.mechanisms.ledger import Ledger, LedgerError
from tests.exact.ledgers import DAY_MS, HOUR_MS, MODES, START_MS, content, open_ledger, spec


def test_a_ledger_survives_being_closed_and_another_holder(tmp_path: Path):
    modes, time_ms = spec(), START_MS
    with open_ledger(tmp_path) as ledger, open_ledger(tmp_path) as other:
        kept = content(ledger.release(modes, "bus", time_ms=time_ms))
        assert content(other.release(modes, "walk", time_ms=time_ms)) == kept
        other.mark_sent(modes, [time_ms])
    with open_ledger(tmp_path) as ledger:
        again = ledger.release(modes, "train", time_ms=time_ms)
        assert (content(again), again.sent) == (kept, True)
        assert ledger.spent(time_ms=time_ms).total == Fraction(1, 10)
    assert (tmp_path / "ledger").stat().st_mode & 0o777 == 0o600


def test_those_who_ask_at_once_get_the_same(tmp_path: Path):
    modes, hours, gate = spec(epsilon=0.001), range(15), threading.Barrier(4)

    def ask(label: str) -> list[tuple[bytes, int]]:
        with open_ledger(tmp_path, modes, budget=1) as ledger:
            gate.wait(timeout=180)
            releases = (
                ledger.release(modes, label, time_ms=START_MS + hour * HOUR_MS) for hour in hours
            )
            return [content(one) for one in releases]

    with ThreadPoolExecutor(4) as pool:
        first, *others = pool.map(ask, [*MODES, "bus"])
    assert others == [first] * 3
    with open_ledger(tmp_path, modes, budget=1) as ledger:
        assert len(ledger.spent().windows) == len(hours)


_ANOTHER_PROCESS = """
import sys
from tests.exact.ledgers import HOUR_MS, START_MS, spec
from ldpstream.mechanisms.ledger import BudgetError, Ledger
modes = spec(epsilon=0.001)
with Ledger(sys.argv[1], specs=[(modes, HOUR_MS)], budget="0.02") as ledger:
    print("ready", flush=True)
    sys.stdin.readline()
    for hour in range(25):
        try:
            release = ledger.release(modes, "bus", time_ms=START_MS + hour * HOUR_MS)
        except BudgetError:
            print("refused")
        else:
            print(release.payload.tobytes().hex())
"""


@pytest.mark.slow
def test_processes_share_windows_and_budget(tmp_path: Path):
    command = [sys.executable, "-c", _ANOTHER_PROCESS, str(tmp_path / "ledger")]
    devices = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for device in devices:
        assert device.stdout is not None
        assert device.stdout.readline() == "ready\n"
    first, second = (device.communicate("go\n", timeout=180)[0].split() for device in devices)
    assert first == second
    assert first.count("refused") == 5


def test_all_holders_have_windows_of_one_length(tmp_path: Path):
    modes = spec()
    longer = Ledger(tmp_path / "ledger", specs=[(modes, DAY_MS)], budget=1)
    with open_ledger(tmp_path) as ledger, longer:
        ledger.release(modes, "bus", time_ms=START_MS + HOUR_MS)
        with pytest.raises(LedgerError, match="windows of 3600000 ms for modes, as before"):
            longer.release(modes, "bus", time_ms=START_MS)
        assert len(ledger.spent().windows) == 1


def test_a_holder_that_cannot_write_releases_nothing_and_goes_on(tmp_path: Path):
    modes = spec()
    with open_ledger(tmp_path, modes) as ledger:
        ledger._store._db.execute("PRAGMA busy_timeout = 10")
        reader = sqlite3.connect(tmp_path / "ledger", isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM release").fetchone()
        # It may begin to write, but not commit while another reads.
        for _ in range(2):
            with pytest.raises(LedgerError, match="locked"):
                ledger.release(modes, "bus", time_ms=START_MS)
        reader.close()
        assert ledger.spent().windows == ()
        assert ledger.release(modes, "bus", time_ms=START_MS).fresh
