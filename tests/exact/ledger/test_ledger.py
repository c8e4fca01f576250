"""The ledger: one report a window, the same one when asked again, exact sums, and vectors."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from ldpstream.mechanisms import CollectionSpec, SpecError, ValueOutsideDomainError
from ldpstream.mechanisms.ledger import BudgetError, Ledger, LedgerError
from ldpstream.mechanisms.ledger.spread import drawn_windows, shared_out
from tests.exact.ledgers import DAY_MS, HOUR_MS, MODES, START_MS, content, open_ledger, spec
from tests.exact.wire.test_vectors import SPECS, read, spec_of


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


VECTOR = read("ledger.json")
SPREAD = read("spread.json")
LABELS = {one["name"]: one["labels"][0] for one in read("devices.json")}


def gives(ledger: Ledger, spec: CollectionSpec, label: object, time_ms: int) -> str:
    try:
        release = ledger.release(spec, label, time_ms=time_ms)
    except BudgetError:
        return "refused"
    except LedgerError:
        return "forgotten"
    return "fresh" if release.fresh else "sent" if release.sent else "again"


def test_every_step(tmp_path: Path):
    specs = {name: spec_of(SPECS[name]) for name, _ in VECTOR["collections"]}
    listed = [(specs[name], window_ms) for name, window_ms in VECTOR["collections"]]
    keys = {"budget": VECTOR["budget"], "horizon_ms": VECTOR["horizon_ms"]}
    with Ledger(tmp_path / "ledger", specs=listed, **keys) as ledger:
        for step in VECTOR["steps"]:
            spec, time_ms = specs[step["collection"]], step["time_ms"]
            if step["do"] == "forget":
                ledger.forget(spec, before_ms=time_ms)
            elif step["do"] == "mark_sent":
                ledger.mark_sent(spec, [time_ms])
            else:
                found = gives(ledger, spec, LABELS[step["collection"]], time_ms)
                assert found == step["gives"], step
            assert str(ledger.spent(time_ms=time_ms).total) == step["spent"], step
        assert str(ledger.spent().total) == VECTOR["spent"]
    given = {step["gives"] for step in VECTOR["steps"] if step["do"] == "release"}
    assert given == {"fresh", "again", "sent", "refused", "forgotten"}


@pytest.mark.parametrize("draw", SPREAD["draws"], ids=lambda one: f"{one['windows']}")
def test_the_windows_that_a_secret_draws(draw: dict):
    numbers = drawn_windows(
        bytes.fromhex(draw["secret"]),
        bytes.fromhex(draw["fingerprint"]),
        draw["start_ms"],
        windows=draw["windows"],
        reports=draw["reports"],
    )
    assert sorted(numbers) == draw["numbers"]


@pytest.mark.parametrize("share", SPREAD["shares"], ids=lambda one: one["budget"])
def test_how_often_collections_take_part(share: dict):
    listed, budget = share["collections"], Fraction(share["budget"])
    windows_ms = {bytes([i]): one["window_ms"] for i, one in enumerate(listed)}
    losses = {bytes([i]): Fraction(one["loss"]) for i, one in enumerate(listed)}
    found = shared_out(
        windows_ms,
        share["horizon_ms"],
        lambda counts: sum(n * losses[one] for one, n in counts.items()) <= budget,
    )
    assert (None if found is None else list(found.values())) == share["reports"]


def test_it_refuses_beyond_the_budget_of_a_period_and_begins_again_in_the_next(tmp_path: Path):
    modes = spec()
    with open_ledger(tmp_path) as ledger:
        for hour in (3, 1, 2):  # three times 0.1 is exactly 0.3
            ledger.release(modes, "bus", time_ms=START_MS + hour * HOUR_MS)
        with pytest.raises(BudgetError) as caught:
            ledger.release(modes, "bus", time_ms=START_MS + 4 * HOUR_MS)
        refused = caught.value
        tenth = Fraction(1, 10)
        assert (refused.spent, refused.asked, refused.allowed) == (3 * tenth, tenth, 3 * tenth)
        assert str(refused) == (
            "modes: expected at most 0.3 (budget) in a period of 1d (horizon_ms), got 0.3 spent "
            "and 0.1 asked: wait for the next, which begins at 2024-10-05T00:00:00Z, or choose a "
            "larger budget"
        )
        assert (refused.horizon_ms, refused.next_ms) == (DAY_MS, START_MS + DAY_MS)
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
        told = (
            r"for ever \(without horizon_ms\), got 0.3 spent and 0.1 asked: choose a larger budget$"
        )
        with pytest.raises(BudgetError, match=told):
            ledger.release(modes, "bus", time_ms=START_MS + 3_000 * DAY_MS)


def test_a_refusal_names_no_time_beyond_the_last_year(tmp_path: Path):
    with open_ledger(tmp_path, budget=0.1, horizon_ms=10**7 * DAY_MS) as ledger:
        ledger.release(spec(), "bus", time_ms=START_MS)
        with pytest.raises(BudgetError, match=r"asked: choose a larger budget$"):
            ledger.release(spec(), "bus", time_ms=START_MS + DAY_MS)


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


def test_windows_longer_than_a_period_count_in_all_that_they_touch(tmp_path: Path):
    """An earlier configuration had windows of a week: its report is about every day of it."""
    week_ms, modes, weekly = 7 * DAY_MS, spec(), spec("weekly", 0.2)
    start_ms = START_MS - START_MS % week_ms
    with Ledger(tmp_path / "ledger", specs=[(weekly, week_ms)], budget=0.3) as ledger:
        ledger.release(weekly, "bus", time_ms=start_ms)
    with open_ledger(tmp_path, modes) as ledger:
        for day in (0, 3, 6):
            time_ms = start_ms + day * DAY_MS
            assert ledger.release(modes, "bus", time_ms=time_ms).fresh
            with pytest.raises(BudgetError):
                ledger.release(modes, "bus", time_ms=time_ms + HOUR_MS)
            assert ledger.spent(time_ms=time_ms).total == Fraction(3, 10)
        for day in (-1, 7):
            assert ledger.spent(time_ms=start_ms + day * DAY_MS).windows == ()
        assert ledger.spent().total == Fraction(5, 10)


@pytest.mark.parametrize("budget", [0, -1, float("nan"), float("inf"), "much", "1/0", "1e9999"])
def test_a_budget_is_a_finite_number_above_0(tmp_path: Path, budget: float | str):
    with pytest.raises(SpecError, match="budget: expected a finite number above 0"):
        open_ledger(tmp_path, budget=budget)


def test_a_budget_below_one_report_is_refused_before_anything_is_drawn(tmp_path: Path):
    told = r"budget: expected at least 1/10, which one report of modes loses, got 99/1000"
    with pytest.raises(SpecError, match=told):
        open_ledger(tmp_path, budget="0.099")
    assert not (tmp_path / "ledger").exists()
    with open_ledger(tmp_path, budget="0.1") as ledger:
        assert ledger.release(spec(), "bus", time_ms=START_MS)


def test_a_budget_below_one_report_repeats_what_was_sent(tmp_path: Path):
    modes = spec()
    with open_ledger(tmp_path) as ledger:
        first = ledger.release(modes, "bus", time_ms=START_MS)
    with open_ledger(tmp_path, budget="0.099") as ledger:
        again = ledger.release(modes, "walk", time_ms=START_MS)
        assert (again.fresh, content(again)) == (False, content(first))
        with pytest.raises(BudgetError, match=r"0\.1 asked: choose a larger budget"):
            ledger.release(modes, "bus", time_ms=START_MS + DAY_MS)


def test_a_file_without_reports_refuses_a_budget_below_one_report(tmp_path: Path):
    open_ledger(tmp_path).close()
    with pytest.raises(SpecError, match="which one report of modes loses"):
        open_ledger(tmp_path, budget="0.099")


def test_windows_stay_as_they_are_and_divide_the_horizon(tmp_path: Path):
    modes = spec()
    with open_ledger(tmp_path) as ledger:
        ledger.release(modes, "bus", time_ms=START_MS)
    with pytest.raises(LedgerError, match="windows of 3600000 ms for modes, as before"):
        Ledger(tmp_path / "ledger", specs=[(modes, 60_000)], budget=1, horizon_ms=DAY_MS)
    with pytest.raises(LedgerError, match="divide the horizon"):
        Ledger(tmp_path / "new", specs=[(modes, 7 * HOUR_MS)], budget=1, horizon_ms=DAY_MS)


@pytest.mark.parametrize("horizon_ms", [0, 1 << 53, 10**30])
def test_a_horizon_is_as_long_as_numbers_are_exact(tmp_path: Path, horizon_ms: int):
    with pytest.raises(LedgerError, match="horizon_ms: expected milliseconds from 1 to 9,007"):
        open_ledger(tmp_path, horizon_ms=horizon_ms)
    for window_ms in (0, 1 << 53):
        with pytest.raises(LedgerError, match="expected windows of 1 to 9,007,199,254,740,991 ms"):
            Ledger(tmp_path / "ledger", specs=[(spec(), window_ms)], budget=1)


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


def test_the_document_of_what_was_spent(tmp_path: Path):
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
