"""A ledger of collections with `hold`: one permanent draw an epoch, charged once, on disk first."""

import multiprocessing
import os
import signal
import sqlite3
from collections import Counter
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from ldpstream.mechanisms import CollectionSpec
from ldpstream.mechanisms.ledger import BudgetError, Ledger, LedgerError
from tests.exact.held import FAMILIES, held
from tests.exact.ledgers import HOUR_MS, START_MS, content, open_ledger, spec

FOUR = "hold = 4\n"
TWO_LEVELS = "hold = { windows = 4, epsilon = 0.2 }\n"


def payloads(ledger: Ledger, one: object, windows: range, label: str = "bus") -> list[bytes]:
    return [
        ledger.release(one, label, time_ms=START_MS + number * HOUR_MS).payload.tobytes()
        for number in windows
    ]


def epochs(folder: Path) -> list[tuple[int, int]]:
    with closing(sqlite3.connect(folder / "ledger")) as file:
        rows = file.execute("SELECT start_ms, end_ms FROM held ORDER BY start_ms").fetchall()
    return [((a - START_MS) // HOUR_MS, (b - START_MS) // HOUR_MS) for a, b in rows]


def test_the_first_value_of_an_epoch_is_repeated_to_its_end(tmp_path: Path):
    held = spec(extra=FOUR)
    with open_ledger(tmp_path, held, budget=10) as ledger:
        # Another value in every window: it changes nothing.
        found = [
            payloads(ledger, held, range(n, n + 1), "bus" if n % 2 else "walk")[0]
            for n in range(10)
        ]
    listed = epochs(tmp_path)
    assert all(end - start == 4 for start, end in listed)
    assert len({start % 4 for start, _ in listed}) == 1
    for start, end in listed:
        assert len({found[n] for n in range(10) if start <= n < end}) == 1
    assert len(listed) in (3, 4)


def test_epochs_are_charged_once_in_each_period_that_they_touch(tmp_path: Path):
    held = spec(extra=FOUR)
    with open_ledger(tmp_path, held, budget=10, horizon_ms=6 * HOUR_MS) as ledger:
        payloads(ledger, held, range(12))
        listed = epochs(tmp_path)
        for part in range(2):
            touched = [one for one in listed if one[0] < 6 * (part + 1) and one[1] > 6 * part]
            spent = ledger.spent(time_ms=START_MS + part * 6 * HOUR_MS)
            assert spent.total == Fraction(len(touched), 10)
            assert sum(one.reports for one in spent.windows) == 6
        assert ledger.spent().total == Fraction(len(listed), 10)
        first = ledger.spent().to_json()["windows"][1]
        assert first["reports"] == 4
        assert first["exact"] == "1/10"


def test_the_windows_that_report_do_not_depend_on_values(tmp_path: Path):
    """The charges of two devices with one secret, and other values, are the same."""
    held, found = spec(extra=TWO_LEVELS), []
    for name, labels in (("a", ["bus"] * 12), ("b", ["walk", "bus", "train"] * 4)):
        folder = tmp_path / name
        folder.mkdir()
        with open_ledger(folder, held, budget=0.6) as ledger:
            with ledger._store.writing():
                ledger._store.secret(bytes(32))
            gave = []
            for hour, label in enumerate(labels):
                try:
                    ledger.release(held, label, time_ms=START_MS + hour * HOUR_MS)
                    gave.append(hour)
                except BudgetError:
                    continue
            found.append((gave, ledger.spent().total, epochs(folder)))
    assert found[0] == found[1]
    assert found[0][1] == Fraction(3, 5)


def test_budgets_refuse_another_epoch_and_never_the_rest_of_one(tmp_path: Path):
    held = spec(extra=FOUR)
    with open_ledger(tmp_path, held, budget=0.2) as ledger:
        gave = []
        for hour in range(12):
            try:
                payloads(ledger, held, range(hour, hour + 1))
                gave.append(hour)
            except BudgetError:
                pass
    listed = epochs(tmp_path)
    assert len(listed) == 2
    assert gave == [n for n in range(12) if any(start <= n < end for start, end in listed)]


def test_draws_outlive_restarts_and_a_lost_secret(tmp_path: Path):
    for extra in (FOUR, TWO_LEVELS):
        held, folder = spec(extra=extra), tmp_path / str(len(extra))
        folder.mkdir()
        with open_ledger(folder, held, budget=10) as ledger:
            before = payloads(ledger, held, range(3))
            kept = epochs(folder)
        with closing(sqlite3.connect(folder / "ledger")) as file, file:
            drawn = file.execute("SELECT report FROM held ORDER BY start_ms").fetchall()
            file.execute("DELETE FROM secret")
        with open_ledger(folder, held, budget=10) as ledger:
            assert payloads(ledger, held, range(3), "walk") == before
            payloads(ledger, held, range(3, 7), "walk")
        assert set(kept) <= set(epochs(folder))
        if extra == FOUR:
            assert before[0] == drawn[0][0]
        assert (folder / "ledger").stat().st_mode & 0o077 == 0


def _report(folder: Path, ready: object) -> None:
    held = spec(extra=FOUR)
    with open_ledger(folder, held, budget=10) as ledger:
        ledger.release(held, "bus", time_ms=START_MS)
        ready.set()
        signal.pause()


def test_a_killed_device_goes_on_with_its_draw(tmp_path: Path):
    """kill -9 in the middle of an epoch: the next process sends the same report on."""
    held = spec(extra=FOUR)
    context = multiprocessing.get_context("fork")
    ready = context.Event()
    process = context.Process(target=_report, args=(tmp_path, ready))
    process.start()
    assert ready.wait(60)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    with closing(sqlite3.connect(tmp_path / "ledger")) as file:
        ((drawn, start, end),) = file.execute(
            "SELECT report, start_ms, end_ms FROM held"
        ).fetchall()
    with open_ledger(tmp_path, held, budget=10) as ledger:
        times = [one for one in range(start, end, HOUR_MS) if one >= START_MS]
        for time_ms in times:
            assert ledger.release(held, "walk", time_ms=time_ms).payload.tobytes() == drawn
        assert ledger.spent().total == Fraction(1, 10)


def test_two_levels_keep_the_draw_and_send_another_report_at_times(tmp_path: Path):
    """In 40 windows: as often the permanent one as keep + (1 - keep)/3 says, 6 errors."""
    held = spec("modes", 1.0, "hold = { windows = 4, epsilon = 2.0 }\n")
    same, drawn = 0, Counter()
    (blend,) = held.hold.chain.blends.values()
    with open_ledger(tmp_path, held, budget=4000, horizon_ms=None) as ledger:
        payloads(ledger, held, range(40))
        for start, _ in epochs(tmp_path):
            time_ms = START_MS + max(start, 0) * HOUR_MS
            epoch = ledger._store.epoch(held.fingerprint, time_ms)
            for row in range(4):
                found = ledger._store.find(held.fingerprint, epoch.start_ms + row * HOUR_MS)
                if found is not None:
                    same += found.report == epoch.report
                    drawn[found.report] += 1
    expected = float(blend.keep + (1 - blend.keep) / 3)
    assert abs(same / 40 - expected) < 6 * np.sqrt(expected * (1 - expected) / 40)
    assert 0 < same < 40
    assert len(drawn) > 1


@pytest.mark.parametrize("mechanism", FAMILIES)
def test_every_chain_is_drawn_once_an_epoch_and_charged_what_the_draw_costs(
    tmp_path: Path, mechanism: str
):
    one = held(mechanism, "{ windows = 4, epsilon = 2.0 }")
    label, valid = one.domain.label(0), set()
    for report in one.mechanism.encode(one.mechanism.possible_reports()):
        valid.add(report.tobytes())
    for _ in range(2):
        # The second time they come from the file.
        with open_ledger(tmp_path, one, budget=100) as ledger:
            found = payloads(ledger, one, range(12), label)
            assert ledger.spent().total == len(epochs(tmp_path)) * one.charged.largest_loss()
            assert one.charged.largest_loss() == one.hold.permanent.policy.largest_loss()
        assert set(found) <= valid
        assert found == payloads_kept(tmp_path, one)


def payloads_kept(folder: Path, one: CollectionSpec) -> list[bytes]:
    """Return what the file has of 12 windows."""
    with open_ledger(folder, one, budget=100) as ledger:
        rows = [ledger._store.find(one.fingerprint, START_MS + n * HOUR_MS) for n in range(12)]
    return [row.report for row in rows]


def test_forgotten_draws_are_gone_and_give_no_second_one(tmp_path: Path):
    held = spec(extra=FOUR)
    with open_ledger(tmp_path, held, budget=10) as ledger:
        payloads(ledger, held, range(1))
        ((_, end),) = epochs(tmp_path)
        payloads(ledger, held, range(end, end + 1))
        ledger.forget(held, before_ms=START_MS + end * HOUR_MS)
        with closing(sqlite3.connect(tmp_path / "ledger")) as file:
            rows = file.execute("SELECT report IS NULL FROM held ORDER BY start_ms").fetchall()
        assert rows == [(1,), (0,)]
        with pytest.raises(LedgerError, match="after those that were forgotten"):
            payloads(ledger, held, range(end - 1, end))
        assert ledger.spent().total == Fraction(2, 10)
        assert len(payloads(ledger, held, range(end, end + 4))) == 4


def test_held_and_fresh_collections_share_a_budget(tmp_path: Path):
    held, fresh = spec(extra=FOUR), spec("other", 0.1)
    with open_ledger(tmp_path, held, fresh, budget=10) as ledger:
        first = content(ledger.release(held, "bus", time_ms=START_MS))
        payloads(ledger, fresh, range(2))
        assert content(ledger.release(held, "walk", time_ms=START_MS)) == first
        assert ledger.spent(time_ms=START_MS).total == Fraction(3, 10)
    # A file in which nothing was ever held has no such table.
    with open_ledger(tmp_path, fresh, budget=10) as ledger:
        assert ledger.spent(time_ms=START_MS).total == Fraction(3, 10)


@pytest.mark.parametrize("spread", [True, "rolling"])
def test_spread_is_refused(tmp_path: Path, spread: bool | str):
    with pytest.raises(LedgerError, match="modes: expected no spread with hold"):
        open_ledger(tmp_path, spec(extra=FOUR), spread=spread)
