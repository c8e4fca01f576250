"""The ledger's file: made whole, refused where damaged, and shared by several holders."""

import errno
import os
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from ldpstream.mechanisms import CollectionSpec
from ldpstream.mechanisms.ledger import Ledger, LedgerError, Release
from tests.exact.ledgers import DAY_MS, HOUR_MS, MODES, START_MS, content, open_ledger, spec
from tests.exact.wire.test_vectors import spec_of
from tests.seeded import SeededEntropy


def test_the_file_holds_no_value(tmp_path: Path):
    """The same draws of two values that give the same report leave the same bytes."""
    modes, files = spec(epsilon=0.0001), []
    # Randomised response at epsilon near 0: with this seed both values report the same.
    for label in ("bus", "train"):
        folder = tmp_path / label
        folder.mkdir()
        with open_ledger(folder, modes) as ledger:
            for seed in range(100):
                entropy = SeededEntropy(seed)
                if same_for_all(modes, seed):
                    ledger.release(modes, label, time_ms=START_MS, entropy=entropy)
                    break
        files.append((folder / "ledger").read_bytes())
    assert files[0] == files[1]


def same_for_all(modes: CollectionSpec, seed: int) -> bool:
    reports = [modes.privatize([x], entropy=SeededEntropy(seed)).item() for x in ("bus", "train")]
    return len(set(reports)) == 1


def test_files_that_are_not_ledgers_are_refused(tmp_path: Path):
    (tmp_path / "ledger").write_text("no database at all, but long enough to be read as one" * 20)
    with pytest.raises(LedgerError, match="expected a ledger that can be used"):
        open_ledger(tmp_path)
    (tmp_path / "ledger").unlink()
    with closing(sqlite3.connect(tmp_path / "ledger")) as database, database:
        database.execute("CREATE TABLE other (x)")
    database.close()
    with pytest.raises(LedgerError, match="expected a ledger of version 1"):
        open_ledger(tmp_path)
    with pytest.raises(LedgerError, match="expected a writable file"):
        open_ledger(tmp_path / "missing")


def test_a_ledger_cut_short_anywhere_is_refused_and_left_as_it_is(tmp_path: Path):
    """SQLite would read one byte, or a last page without its end, as if nothing had been spent."""
    modes, file = spec(), tmp_path / "ledger"
    with open_ledger(tmp_path) as ledger:
        for hour in range(3):
            ledger.release(modes, "bus", time_ms=START_MS + hour * HOUR_MS)
    whole = file.read_bytes()
    last_page = len(whole) - 4096
    edges = (512, *range(4096, len(whole), 4096))
    near = [edge + step for edge in edges for step in (-1, 0, 1)]
    for size in (0, 1, 2, 23, 24, 99, 100, *near, *range(last_page, len(whole), 89)):
        file.write_bytes(whole[:size])
        with pytest.raises(LedgerError, match=f"^{file}: expected a ledger"):
            open_ledger(tmp_path)
        assert file.read_bytes() == whole[:size]
    file.write_bytes(whole)
    with open_ledger(tmp_path) as ledger:
        assert ledger.spent().total == Fraction(3, 10)


def test_a_new_ledger_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def interrupted(*_: object) -> None:
        assert not (tmp_path / "ledger").exists()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", interrupted)
        with pytest.raises(KeyboardInterrupt):
            open_ledger(tmp_path)
    assert list(tmp_path.iterdir()) == []
    with open_ledger(tmp_path) as ledger:
        assert ledger.release(spec(), "bus", time_ms=START_MS).fresh
    assert [one.name for one in tmp_path.iterdir()] == ["ledger"]


@pytest.mark.parametrize("links", [True, False])
def test_a_new_ledger_never_replaces_the_one_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
):
    modes, link, others = spec(), os.link, []

    def late(*names: Path) -> None:
        monkeypatch.setattr(os, "link", link if links else no_links)
        with open_ledger(tmp_path) as other:
            others.append(content(other.release(modes, "bus", time_ms=START_MS)))
        os.link(*names)

    monkeypatch.setattr(os, "link", late)
    with open_ledger(tmp_path) as ledger:
        assert [content(ledger.release(modes, "walk", time_ms=START_MS))] == others
    assert (tmp_path / "ledger").stat().st_mode & 0o777 == 0o600
    assert [one.name for one in tmp_path.iterdir()] == ["ledger"]


def no_links(*_: object) -> None:
    raise PermissionError(errno.EPERM, "no links here")


@pytest.mark.parametrize("loss", ["", "0", "1e999999999", "-1/10", "1/0"])
def test_a_damaged_loss_is_reported(tmp_path: Path, loss: str):
    modes = spec()
    with open_ledger(tmp_path, modes) as ledger:
        ledger.release(modes, "bus", time_ms=START_MS)
    with closing(sqlite3.connect(tmp_path / "ledger")) as database, database:
        database.execute("UPDATE spec SET loss = ?", (loss,))
    database.close()
    with pytest.raises(LedgerError, match="the file is damaged"):
        open_ledger(tmp_path, modes)


def test_a_full_disk_releases_nothing_and_goes_on_when_there_is_room(tmp_path: Path):
    modes = spec(epsilon=0.0001)
    with open_ledger(tmp_path, modes) as ledger:
        store = ledger._store
        (pages,) = store._db.execute("PRAGMA page_count").fetchone()
        store._db.execute(f"PRAGMA max_page_count = {pages}")
        with store.writing():
            # As many as a page of the table has room for, and about ten less.
            for hour in range(100, 180):
                store.add(modes.fingerprint, START_MS + hour * HOUR_MS, START_MS, bytes(1))
        kept = 0
        while release(ledger, modes, kept) is not None:
            kept += 1
        assert kept > 0
        with pytest.raises(LedgerError, match="full"):
            ledger.release(modes, "bus", time_ms=START_MS + kept * HOUR_MS)
        assert len(ledger.spent(time_ms=START_MS).windows) == min(kept, 24)
        store._db.execute("PRAGMA max_page_count = 100000")
        again = release(ledger, modes, kept)
        assert again is not None
        assert again.fresh


def release(ledger: Ledger, modes: CollectionSpec, hour: int) -> Release | None:
    """Return a window's report, or None where the disk is full."""
    try:
        return ledger.release(modes, "bus", time_ms=START_MS + hour * HOUR_MS)
    except LedgerError:
        return None


def test_nothing_of_a_forgotten_report_is_left_in_the_file(tmp_path: Path):
    bits = spec_of({"toml": BITS})
    with open_ledger(tmp_path, bits, budget=10**6) as ledger:
        releases = [
            ledger.release(bits, 7, time_ms=START_MS + hour * HOUR_MS) for hour in range(20)
        ]
        kept = (tmp_path / "ledger").read_bytes()
        # 25 bytes of fair coins: found by chance with probability below 10^-50.
        assert all(one.payload.tobytes() in kept for one in releases)
        assert ledger.forget(bits, before_ms=START_MS + 20 * HOUR_MS) == 20
        left = (tmp_path / "ledger").read_bytes()
        assert not any(one.payload.tobytes()[:12] in left for one in releases)


BITS = """[collection.bits]
mechanism = "l1-bits"
epsilon = 0.001
domain = { size = 201 }
"""


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
