"""The ledger: one report a window, the same one whenever it is asked again."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from ldpstream.mechanisms import ValueOutsideDomainError
from ldpstream.mechanisms.ledger import BudgetError, LedgerError
from tests.exact.ledgers import HOUR_MS, MODES, START_MS, content, open_ledger, spec
from tests.exact.wire.test_vectors import spec_of


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


def test_a_bad_label_costs_nothing_and_is_not_repeated(tmp_path: Path):
    modes = spec()
    with open_ledger(tmp_path) as ledger:
        with pytest.raises(ValueOutsideDomainError) as caught:
            ledger.release(modes, "secret", time_ms=START_MS)
        assert "secret" not in str(caught.value)
        assert ledger.spent().windows == ()


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
    with pytest.raises(LedgerError, match="horizon_ms: expected milliseconds from 1 to 9,007"):
        open_ledger(tmp_path, modes, horizon_ms=0)


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
