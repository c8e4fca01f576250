"""A ledger that spreads its budget: which windows it takes part in, and what it never exceeds."""

import itertools
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from math import comb
from pathlib import Path

import numpy as np
import pytest

from ldpstream.mechanisms.ledger import BudgetError, Ledger, LedgerError, SkippedError
from ldpstream.mechanisms.ledger.spread import draw_subset, drawn_windows, shared_out
from tests.exact.ledgers import DAY_MS, HOUR_MS, START_MS, content, open_ledger, spec

SPREADS = pytest.mark.parametrize("spread", [True, "rolling"])


def taken(ledger: Ledger, one: object, start_ms: int, windows: int = 24) -> list[int]:
    """Return the numbers of the windows from a time on in which the ledger gives a report."""
    found = []
    for number in range(windows):
        try:
            ledger.release(one, "bus", time_ms=start_ms + number * HOUR_MS)
        except SkippedError:
            continue
        found.append(number)
    return found


@pytest.mark.parametrize(("windows", "reports"), [(1, 1), (4, 1), (4, 4), (5, 2), (6, 3), (6, 4)])
def test_every_subset_is_equally_likely(windows: int, reports: int):
    """Over all sequences of uniform numbers that the draw can get."""
    bounds = range(windows - reports + 1, windows + 1)
    found: Counter[frozenset[int]] = Counter()
    for numbers in itertools.product(*(range(bound) for bound in bounds)):
        left = iter(zip(bounds, numbers, strict=True))

        def below(bound: int, left: Iterator[tuple[int, int]] = left) -> int:
            expected, number = next(left)
            assert bound == expected
            return number

        found[draw_subset(below, windows=windows, reports=reports)] += 1
    assert all(len(subset) == reports for subset in found)
    assert len(found) == comb(windows, reports)
    assert len(set(found.values())) == 1


def test_secrets_collections_and_periods_draw_independently():
    """15 subsets: chi-square with 14 degrees of freedom is above 63 with probability 3e-8."""
    for arguments in (
        lambda n: (n.to_bytes(32, "big"), bytes(8), 0),
        lambda n: (bytes(32), n.to_bytes(8, "big"), 0),
        lambda n: (bytes(32), bytes(8), n * DAY_MS),
        lambda n: (n.to_bytes(32, "big"), bytes(8), None),
    ):
        drawn = Counter(
            drawn_windows(*arguments(number), windows=6, reports=4) for number in range(1_500)
        )
        counts = np.array(list(drawn.values()))
        assert counts.size == 15
        assert ((counts - 100) ** 2 / 100).sum() < 63


@SPREADS
def test_it_takes_part_in_exactly_as_many_windows_as_the_budget_allows(
    tmp_path: Path, spread: bool | str
):
    modes = spec()
    with open_ledger(tmp_path, spread=spread) as ledger:
        days = [taken(ledger, modes, START_MS + day * DAY_MS) for day in range(3)]
        assert [len(day) for day in days] == [3, 3, 3]
        assert ledger.spent(time_ms=START_MS).total == Fraction(3, 10)
        # What is asked for again is given again, and what was skipped stays so.
        assert taken(ledger, modes, START_MS) == days[0]
        if spread == "rolling":
            assert days[0] == days[1] == days[2]
        else:
            assert days[0] != days[1] or days[1] != days[2]


def test_the_windows_depend_on_no_value_and_on_no_choice_of_times(tmp_path: Path):
    """The same secret, other values, another order, and windows that are missed: the same set."""
    modes = spec()
    with open_ledger(tmp_path, spread=True) as ledger:
        secret, chosen = ledger.secret, taken(ledger, modes, START_MS)
    for name, label, order in (
        ("walks", "walk", range(23, -1, -1)),
        ("misses", "bus", range(1, 24, 2)),
    ):
        folder = tmp_path / name
        folder.mkdir()
        with open_ledger(folder, spread=True) as ledger, ledger._store.writing():
            assert ledger._store.secret(secret) == secret
        with open_ledger(folder, spread=True) as ledger:
            found = []
            for hour in order:
                try:
                    ledger.release(modes, label, time_ms=START_MS + hour * HOUR_MS)
                    found.append(hour)
                except SkippedError:
                    pass
            # A window that is missed is lost, not moved to another one.
            assert sorted(found) == [hour for hour in chosen if hour in order]


@SPREADS
def test_what_was_drawn_outlives_a_restart_and_a_lost_secret(tmp_path: Path, spread: bool | str):
    modes = spec()
    with open_ledger(tmp_path, spread=spread) as ledger:
        parts = [ledger.takes_part(modes, time_ms=START_MS + h * HOUR_MS) for h in range(24)]
        first = ledger.release(modes, "bus", time_ms=START_MS + parts.index(True) * HOUR_MS)
    with closing(sqlite3.connect(tmp_path / "ledger")) as file, file:
        file.execute("DELETE FROM secret")
    with open_ledger(tmp_path, spread=spread) as ledger:
        again = [ledger.takes_part(modes, time_ms=START_MS + h * HOUR_MS) for h in range(24)]
        assert again == parts
        kept = ledger.release(modes, "walk", time_ms=START_MS + parts.index(True) * HOUR_MS)
        assert content(kept) == content(first)


@pytest.mark.parametrize("seed", range(3))
def test_no_24_windows_in_a_row_exceed_the_budget_whatever_is_lost(tmp_path: Path, seed: int):
    """Rolling: at most 3 in any 24 windows in a row, though the secret and the draw are lost."""
    modes, draw = spec(), np.random.default_rng(seed)
    reported, refused = [], 0
    for day in draw.permutation(4).tolist():
        with open_ledger(tmp_path, spread="rolling") as ledger:
            for hour in range(24):
                time_ms = START_MS + (24 * day + hour) * HOUR_MS
                try:
                    reported.append(ledger.release(modes, "bus", time_ms=time_ms).start_ms)
                except SkippedError:
                    continue
                except BudgetError:
                    refused += 1
        if draw.random() < 0.5:
            with closing(sqlite3.connect(tmp_path / "ledger")) as file, file:
                file.execute("DELETE FROM secret")
                file.execute("DELETE FROM drawn")
    starts = np.array(sorted(reported))
    for first in range(-24, 4 * 24):
        inside = (starts >= START_MS + first * HOUR_MS) & (
            starts < START_MS + (first + 24) * HOUR_MS
        )
        assert inside.sum() <= 3
    assert len(reported) + refused == 12


def test_fresh_sets_may_meet_at_the_end_of_a_period_and_rolling_ones_never_do():
    secrets = [number.to_bytes(32, "big") for number in range(200)]

    def most(secret: bytes, *, rolling: bool) -> int:
        starts = [
            24 * day + number
            for day in range(4)
            for number in drawn_windows(
                secret, bytes(8), None if rolling else day * DAY_MS, windows=24, reports=4
            )
        ]
        return max(sum(first <= one < first + 24 for one in starts) for first in range(72))

    assert {most(secret, rolling=True) for secret in secrets} == {4}
    assert 4 < max(most(secret, rolling=False) for secret in secrets) <= 8


def test_collections_share_the_budget_by_their_windows(tmp_path: Path):
    modes, other = spec(), spec("other", 0.2)
    listed = [(modes, HOUR_MS), (other, 2 * HOUR_MS)]
    with Ledger(
        tmp_path / "ledger", specs=listed, budget=1.2, horizon_ms=DAY_MS, spread=True
    ) as ledger:
        hours = taken(ledger, modes, START_MS)
        pairs = {hour // 2 for hour in taken(ledger, other, START_MS)}
        # A quarter of the windows of each: 6 of 24 at 0.1, 3 of 12 at 0.2.
        assert (len(hours), len(pairs)) == (6, 3)
        assert ledger.spent(time_ms=START_MS).total == Fraction(12, 10)


def test_shares_are_the_largest_that_fit():
    """Against all shares, for random windows and losses."""
    draw = np.random.default_rng(7)
    for _ in range(200):
        windows_ms = {bytes([i]): int(draw.choice([1, 2, 3, 4, 6, 12])) for i in range(3)}
        losses = {one: int(draw.integers(1, 5)) for one in windows_ms}
        budget = int(draw.integers(1, 80))

        def fits(counts: dict, losses: dict = losses, budget: int = budget) -> bool:
            return sum(n * losses[one] for one, n in counts.items()) <= budget

        options = [
            {one: max(1, stretch // window) for one, window in windows_ms.items()}
            for stretch in range(13)
        ]
        assert shared_out(windows_ms, 12, fits) == max(
            (one for one in options if fits(one)), key=lambda one: sum(one.values()), default=None
        )


def test_a_budget_for_all_windows_takes_part_in_all(tmp_path: Path):
    modes = spec()
    with open_ledger(tmp_path, budget=100, spread=True) as ledger:
        assert taken(ledger, modes, START_MS) == list(range(24))


def test_a_budget_below_one_report_repeats_what_was_sent(tmp_path: Path):
    modes, told = spec(), "at least one report of each collection"
    with open_ledger(tmp_path, spread=True) as ledger:
        hour = taken(ledger, modes, START_MS)[0]
    with open_ledger(tmp_path, budget=0.05, spread=True) as ledger:
        assert not ledger.release(modes, "walk", time_ms=START_MS + hour * HOUR_MS).fresh
        with pytest.raises(LedgerError, match=told):
            ledger.release(modes, "bus", time_ms=START_MS + DAY_MS)
        with pytest.raises(LedgerError, match=told):
            ledger.takes_part(modes, time_ms=START_MS)


def test_what_cannot_be_spread_is_refused(tmp_path: Path):
    with pytest.raises(LedgerError, match="spread: expected a horizon"):
        open_ledger(tmp_path, horizon_ms=None, spread=True)
    with pytest.raises(LedgerError, match="at least one report of each collection"):
        open_ledger(tmp_path, budget=0.05, spread=True)
    with pytest.raises(LedgerError, match="at most 1,000,000 windows"):
        open_ledger(tmp_path, horizon_ms=1_000_001 * HOUR_MS, spread=True)
    with pytest.raises(LedgerError, match='expected True, False or "rolling"'):
        open_ledger(tmp_path, spread="often")
    assert not (tmp_path / "ledger").exists()


def test_a_draw_that_is_damaged_is_refused(tmp_path: Path):
    modes = spec()
    for numbers in ("", "1,2", "1,2,24", "1,1,2", "x"):
        folder = tmp_path / f"at {numbers}"
        folder.mkdir()
        with open_ledger(folder, spread=True) as ledger:
            ledger.takes_part(modes, time_ms=START_MS)
        with closing(sqlite3.connect(folder / "ledger")) as file, file:
            file.execute("UPDATE drawn SET numbers = ?", (numbers,))
        with (
            open_ledger(folder, spread=True) as ledger,
            pytest.raises(LedgerError, match="expected 3 of 24 windows drawn"),
        ):
            ledger.takes_part(modes, time_ms=START_MS)
