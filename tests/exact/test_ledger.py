"""The ledger: one report a window, exact sums, refusals, and what survives."""

import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from ldpstream.mechanisms import (
    BlockPolicy,
    Blocks,
    CollectionSpec,
    MatrixPolicy,
    SeededEntropy,
    SpecError,
    ValueOutsideDomainError,
)
from ldpstream.mechanisms.ledger import BudgetError, Ledger, LedgerError, Release
from tests.exact.test_vectors import spec_of

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
START_MS = 20_000 * DAY_MS
MODES = ["bus", "train", "walk"]


def spec(name: str = "modes", epsilon: float = 0.1, extra: str = "") -> CollectionSpec:
    mechanism = "high-low" if "sensitive" in extra else "randomized-response"
    return spec_of(
        {
            "toml": f'[collection.{name}]\nmechanism = "{mechanism}"\nepsilon = {epsilon}\n'
            f'domain = {{ values = ["bus", "train", "walk"] }}\nprecision = "1m"\n{extra}'
        }
    )


def open_ledger(folder: Path, *specs: CollectionSpec, **options: object) -> Ledger:
    chosen = {"budget": 0.3, "horizon_ms": DAY_MS, **options}
    listed = [(one, HOUR_MS) for one in specs or (spec(),)]
    return Ledger(folder / "ledger", specs=listed, **chosen)


def content(release: Release) -> tuple[bytes, int]:
    return release.payload.tobytes(), release.time_ms


def test_a_window_has_one_report_whatever_is_asked_again(tmp_path: Path):
    modes, large = spec(), 60
    with open_ledger(tmp_path, modes, budget=large) as ledger:
        first = [
            ledger.release(modes, "bus", time_ms=START_MS + hour * HOUR_MS + 61_234)
            for hour in range(40)
        ]
        assert all(one.fresh and not one.sent for one in first)
        # The cut time stays too: it is what the first report said.
        assert {one.time_ms % HOUR_MS for one in first} == {60_000}
        again = [
            ledger.release(modes, label, time_ms=START_MS + hour * HOUR_MS + 3_599_999)
            for hour in range(40)
            for label in MODES
        ]
        assert not any(one.fresh for one in again)
        assert [content(one) for one in again] == [content(one) for one in first for _ in MODES]
        # They were drawn: with 40 of them one outcome alone has probability below 10^-15.
        assert len({one.payload.tobytes() for one in first}) > 1
        assert ledger.spent().total == 40 * Fraction(1, 10)


def test_it_survives_being_closed_and_another_holder(tmp_path: Path):
    modes, time_ms = spec(), START_MS
    with open_ledger(tmp_path) as ledger, open_ledger(tmp_path) as other:
        kept = content(ledger.release(modes, "bus", time_ms=time_ms))
        assert content(other.release(modes, "walk", time_ms=time_ms)) == kept
    with open_ledger(tmp_path) as ledger:
        assert content(ledger.release(modes, "train", time_ms=time_ms)) == kept
        assert ledger.spent(time_ms=time_ms).total == Fraction(1, 10)
    assert (tmp_path / "ledger").stat().st_mode & 0o777 == 0o600


def test_it_refuses_beyond_the_budget_of_a_period_and_begins_anew_in_the_next(tmp_path: Path):
    modes = spec()
    with open_ledger(tmp_path) as ledger:
        for hour in (3, 1, 2):  # three times 0.1 is exactly 0.3
            ledger.release(modes, "bus", time_ms=START_MS + hour * HOUR_MS)
        with pytest.raises(BudgetError) as caught:
            ledger.release(modes, "bus", time_ms=START_MS + 4 * HOUR_MS)
        refused = caught.value
        tenth = Fraction(1, 10)
        assert (refused.spent, refused.asked, refused.allowed) == (3 * tenth, tenth, 3 * tenth)
        assert "0.3 in this period, got 0.3 spent and 0.1 asked" in str(refused)
        assert "bus" not in str(refused)
        # What it has, it still gives; what was refused left no trace.
        assert not ledger.release(modes, "bus", time_ms=START_MS + HOUR_MS).fresh
        assert len(ledger.spent(time_ms=START_MS).windows) == 3
        for hour in (24, 25, -1):
            assert ledger.release(modes, "bus", time_ms=START_MS + hour * HOUR_MS).fresh
        assert ledger.spent(time_ms=START_MS + DAY_MS).total == 2 * tenth
        assert ledger.spent().total == 6 * tenth


def test_without_a_horizon_the_budget_is_for_ever(tmp_path: Path):
    modes = spec()
    with open_ledger(tmp_path, horizon_ms=None) as ledger:
        for day in range(3):
            ledger.release(modes, "bus", time_ms=START_MS + day * DAY_MS)
        with pytest.raises(BudgetError):
            ledger.release(modes, "bus", time_ms=START_MS + 3_000 * DAY_MS)


def test_all_collections_share_the_budget_also_those_of_earlier_configurations(tmp_path: Path):
    modes, other = spec(), spec("other", 0.125)
    with open_ledger(tmp_path, modes) as ledger:
        ledger.release(modes, "bus", time_ms=START_MS)
        ledger.release(modes, "bus", time_ms=START_MS + HOUR_MS)
    with open_ledger(tmp_path, other) as ledger:
        with pytest.raises(BudgetError) as caught:
            ledger.release(other, "bus", time_ms=START_MS)
        assert (caught.value.spent, caught.value.asked) == (Fraction(1, 5), Fraction(1, 8))
        with pytest.raises(LedgerError, match="opened with"):
            ledger.release(modes, "bus", time_ms=START_MS)
        with pytest.raises(LedgerError, match="among the collections"):
            ledger.spent_policy()


def test_budgets_of_pairs(tmp_path: Path):
    hidden, classical = spec("hidden", 0.2, 'sensitive = ["bus"]\n'), spec("modes", 0.3)
    inf = float("inf")
    allowed = MatrixPolicy.of([[0, 0.75, 0.75], [inf, 0, inf], [inf, inf, 0]])
    with open_ledger(tmp_path, hidden, classical, budget=allowed) as ledger:
        ledger.release(classical, "bus", time_ms=START_MS)
        ledger.release(hidden, "bus", time_ms=START_MS)
        ledger.release(hidden, "bus", time_ms=START_MS + HOUR_MS)
        spent = ledger.spent_policy(time_ms=START_MS)
        # 0.3 as a float is a little less than 3/10, and counts as that.
        assert spent.entry(0, 1) == Fraction(2, 5) + Fraction(0.3)
        assert spent.entry(1, 0) is None
        with pytest.raises(BudgetError, match="of some pair"):
            ledger.release(hidden, "walk", time_ms=START_MS + 2 * HOUR_MS)
        ledger.release(hidden, "walk", time_ms=START_MS + DAY_MS)
    with pytest.raises(LedgerError, match=f"the spec {classical.fingerprint.hex()} of modes"):
        open_ledger(tmp_path, hidden, budget=allowed)
    with pytest.raises(SpecError, match="those of all collections"):
        open_ledger(tmp_path, hidden, budget=BlockPolicy(1.0, Blocks.one(4)))


@pytest.mark.parametrize("budget", [0, -1, float("nan"), float("inf"), "much", "1/0"])
def test_a_budget_is_a_finite_number_above_0(tmp_path: Path, budget: float | str):
    with pytest.raises(SpecError, match="budget: expected a finite number above 0"):
        open_ledger(tmp_path, budget=budget)


def test_windows_stay_as_they_are_and_divide_the_horizon(tmp_path: Path):
    modes = spec()
    with open_ledger(tmp_path) as ledger:
        ledger.release(modes, "bus", time_ms=START_MS)
    with pytest.raises(LedgerError, match="windows of 3600000 ms for modes, as before"):
        Ledger(tmp_path / "ledger", specs=[(modes, 60_000)], budget=1, horizon_ms=DAY_MS)
    with pytest.raises(LedgerError, match="divide the horizon"):
        Ledger(tmp_path / "new", specs=[(modes, 7 * HOUR_MS)], budget=1, horizon_ms=DAY_MS)


def test_a_bad_label_costs_nothing_and_is_not_told(tmp_path: Path):
    modes = spec()
    with open_ledger(tmp_path) as ledger:
        with pytest.raises(ValueOutsideDomainError) as caught:
            ledger.release(modes, "secret", time_ms=START_MS)
        assert "secret" not in str(caught.value)
        assert ledger.spent().windows == ()


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


def test_what_is_forgotten_stays_charged_and_gets_no_second_report(tmp_path: Path):
    modes = spec()
    with open_ledger(tmp_path) as ledger:
        for hour in range(3):
            ledger.release(modes, "bus", time_ms=START_MS + hour * HOUR_MS)
        # A window goes once it has ended.
        assert ledger.forget(modes, before_ms=START_MS + 2 * HOUR_MS - 1) == 1
        assert ledger.forget(modes, before_ms=START_MS + 2 * HOUR_MS) == 1
        assert ledger.forget(modes, before_ms=START_MS + 2 * HOUR_MS) == 0
        for hour in range(2):
            with pytest.raises(LedgerError, match="forgotten"):
                ledger.release(modes, "bus", time_ms=START_MS + hour * HOUR_MS)
        assert not ledger.release(modes, "bus", time_ms=START_MS + 2 * HOUR_MS).fresh
        assert ledger.spent().total == Fraction(3, 10)


def test_what_has_arrived_is_marked(tmp_path: Path):
    modes = spec()
    with open_ledger(tmp_path) as ledger:
        first = ledger.release(modes, "bus", time_ms=START_MS)
        ledger.release(modes, "bus", time_ms=START_MS + HOUR_MS)
        ledger.mark_sent(modes, [first.start_ms])
    with open_ledger(tmp_path) as ledger:
        sent = [ledger.release(modes, "bus", time_ms=START_MS + h * HOUR_MS).sent for h in range(2)]
        assert sent == [True, False]


def test_what_was_spent_as_a_document(tmp_path: Path):
    modes = spec(epsilon=0.3)
    with open_ledger(tmp_path, modes, budget=1) as ledger:
        ledger.release(modes, "bus", time_ms=START_MS)
        document = ledger.spent().to_json()
    exact = Fraction(document["exact"])
    assert exact == Fraction(0.3)
    assert Fraction(document["spent"]) >= exact
    (window,) = document["windows"]
    assert window["collection"] == "modes"
    assert window["window"] == {"start": "2024-10-04T00:00:00Z", "end": "2024-10-04T01:00:00Z"}


def test_files_that_are_no_ledger_are_refused(tmp_path: Path):
    (tmp_path / "ledger").write_text("no database at all, but long enough to be read as one" * 20)
    with pytest.raises(LedgerError, match="expected a ledger that can be used"):
        open_ledger(tmp_path)
    (tmp_path / "ledger").unlink()
    with sqlite3.connect(tmp_path / "ledger") as database:
        database.execute("CREATE TABLE other (x)")
    database.close()
    with pytest.raises(LedgerError, match="expected a ledger of version 1"):
        open_ledger(tmp_path)
    with pytest.raises(LedgerError, match="expected a writable file"):
        open_ledger(tmp_path / "missing")


def test_a_released_report_frames_as_any_other(tmp_path: Path):
    modes = spec()
    with open_ledger(tmp_path) as ledger:
        release = ledger.release(modes, "bus", time_ms=START_MS + 5)
    reports, valid = modes.mechanism.decode(release.payload)
    assert valid.all()
    frame = modes.frame_reports(reports, times_ms=np.array([release.time_ms]))
    assert len(frame) == 25


def test_those_who_ask_at_once_get_the_same(tmp_path: Path):
    modes, hours, gate = spec(epsilon=0.001), range(15), threading.Barrier(4)

    def ask(label: str) -> list[tuple[bytes, int]]:
        with open_ledger(tmp_path, modes, budget=1) as ledger:
            gate.wait(timeout=30)
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
from tests.exact.test_ledger import HOUR_MS, START_MS, spec
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


def test_processes_share_windows_and_budget(tmp_path: Path):
    command = [sys.executable, "-c", _ANOTHER_PROCESS, str(tmp_path / "ledger")]
    devices = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for device in devices:
        assert device.stdout is not None
        assert device.stdout.readline() == "ready\n"
    first, second = (device.communicate("go\n", timeout=60)[0].split() for device in devices)
    assert first == second
    assert first.count("refused") == 5


@pytest.mark.parametrize("kind", [np.int64, np.uint64, np.int32])
def test_times_of_numpy_are_the_same_times(tmp_path: Path, kind: type[np.integer]):
    """SQLite would keep them as bytes: another window, and beyond every budget."""
    modes, base_ms = spec(), 0 if kind is np.int32 else START_MS
    with open_ledger(tmp_path, modes) as ledger:
        first = ledger.release(modes, "bus", time_ms=kind(base_ms))
        assert not ledger.release(modes, "walk", time_ms=base_ms + 1).fresh
        ledger.mark_sent(modes, [kind(first.start_ms)])
        again = ledger.release_index(modes, 2, time_ms=kind(base_ms + 2))
        assert (again.fresh, again.sent) == (False, True)
        assert [type(ms) for ms in (again.time_ms, again.start_ms)] == [int, int]
        assert ledger.spent(time_ms=kind(base_ms)).total == Fraction(1, 10)
        for hour in (1, 2):
            ledger.release(modes, "bus", time_ms=kind(base_ms + hour * HOUR_MS))
        with pytest.raises(BudgetError):
            ledger.release(modes, "bus", time_ms=kind(base_ms + 3 * HOUR_MS))
        assert ledger.forget(modes, before_ms=kind(base_ms + HOUR_MS)) == 1
        with pytest.raises(LedgerError, match="forgotten"):
            ledger.release(modes, "bus", time_ms=base_ms)


@pytest.mark.parametrize("time_ms", [1.5e12, float("nan"), "0", None, 1 << 60, -(1 << 60)])
def test_times_are_whole_milliseconds(tmp_path: Path, time_ms: int):
    modes = spec()
    with open_ledger(tmp_path, modes) as ledger:
        with pytest.raises(ValueError, match="whole milliseconds since the epoch"):
            ledger.release(modes, "bus", time_ms=time_ms)
        with pytest.raises(ValueError, match="whole milliseconds since the epoch"):
            ledger.mark_sent(modes, [time_ms])
        assert ledger.spent().windows == ()
    with pytest.raises(LedgerError, match="divide the horizon of 0 ms"):
        open_ledger(tmp_path, modes, horizon_ms=0)


def test_a_clock_set_back_brings_back_the_earlier_reports(tmp_path: Path):
    modes = spec(epsilon=0.01)
    with open_ledger(tmp_path, modes) as ledger:
        hours = [0, 5, 3, 4, 0, 5, 3]
        releases = [
            ledger.release(modes, MODES[i % 3], time_ms=START_MS + hour * HOUR_MS)
            for i, hour in enumerate(hours)
        ]
        assert [one.fresh for one in releases] == [True] * 4 + [False] * 3
        assert [content(one) for one in releases[4:]] == [content(one) for one in releases[:3]]
        assert len(ledger.spent(time_ms=START_MS).windows) == 4


def test_the_window_is_that_of_the_cut_time(tmp_path: Path):
    """Where the precision does not divide the window, a time may be cut into the one before."""
    modes = spec_of({"toml": SEVEN_MINUTES})
    with open_ledger(tmp_path, modes, budget=9) as ledger:
        step_ms = 7 * 60_000
        edge_ms = START_MS + HOUR_MS
        last_ms = edge_ms - edge_ms % step_ms
        assert last_ms < edge_ms
        first = ledger.release(modes, "bus", time_ms=last_ms)
        # Past the edge, but reported as of before it: no second report there.
        assert not ledger.release(modes, "walk", time_ms=edge_ms + 1).fresh
        assert (first.time_ms, first.start_ms) == (last_ms, START_MS)
        assert ledger.release(modes, "walk", time_ms=last_ms + step_ms).start_ms == edge_ms


SEVEN_MINUTES = """[collection.modes]
mechanism = "randomized-response"
epsilon = 1.0
domain = { values = ["bus", "train", "walk"] }
precision = "7m"
"""


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


def test_one_who_cannot_write_releases_nothing_and_goes_on(tmp_path: Path):
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


@pytest.mark.parametrize("loss", ["", "0", "1e999999999", "-1/10", "1/0"])
def test_a_damaged_loss_is_said(tmp_path: Path, loss: str):
    modes = spec()
    with open_ledger(tmp_path, modes) as ledger:
        ledger.release(modes, "bus", time_ms=START_MS)
    with sqlite3.connect(tmp_path / "ledger") as database:
        database.execute("UPDATE spec SET loss = ?", (loss,))
    database.close()
    with pytest.raises(LedgerError, match="the file is damaged"):
        open_ledger(tmp_path, modes)


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
