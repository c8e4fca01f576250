"""Coverage of two-valued shares, enumerated over every number of decisive reports."""

from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from ldpstream.estimators.bounds.bounded import forged_reports
from ldpstream.estimators.bounds.options import Estimand, Method
from ldpstream.estimators.bounds.two_valued import Tosses, below, enumerated
from ldpstream.estimators.bounds.types import Estimate
from ldpstream.estimators.estimate import estimate_sets, estimate_values
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from ldpstream.mechanisms.families.design.randomized_response import RandomizedResponse
from ldpstream.mechanisms.interface.mechanism import Mechanism

Floats = NDArray[np.float64]
SHARES = (0.001, 0.01, 0.05, 0.2, 0.5)
MECHANISMS: dict[str, Mechanism] = {
    "randomized-response 2, 0.5": RandomizedResponse(0.5, Blocks.one(2)),
    "randomized-response 40, 1": RandomizedResponse(1.0, Blocks.one(40)),
    "randomized-response 8, 4": RandomizedResponse(4.0, Blocks.one(8)),
    "hadamard 3, 2": BlockHadamard(2.0, Blocks.one(3)),
    "hadamard 3, 8": BlockHadamard(8.0, Blocks.one(3)),
}


@cache
def chances(name: str) -> tuple[int, int, float, float]:
    """Return a decisive output, another, and how often users inside and outside send the first."""
    rows = MECHANISMS[name].channel().rows
    outputs = range(len(rows[0]))
    decisive = max(outputs, key=lambda y: rows[0][y] - rows[1][y])
    other = min(outputs, key=lambda y: rows[0][y] - rows[1][y])
    own = [y for y in outputs if rows[0][y] == rows[0][decisive]]
    inside, outside = (float(sum(row[y] for y in own)) for row in rows[:2])
    return decisive, other, inside, outside


def coverage(name: str, n: int, estimand: Estimand, method: Method) -> list[float]:
    mechanism = MECHANISMS[name]
    decisive, other, inside, outside = chances(name)
    low, high = np.empty(n + 1), np.empty(n + 1)
    options: Any = {"method": method, "estimand": estimand}
    for d in range(n + 1):
        statistic = mechanism.empty()
        statistic[decisive], statistic[other] = d, n - d
        found = estimate_values(mechanism, statistic, n, values=np.array([0]), **options)
        low[d], high[d] = found.low[0], found.high[0]
    out = []
    for share in SHARES:
        people = round(share * n)
        if estimand == "respondents":
            truth = people / n
            chance = np.convolve(
                binom.pmf(np.arange(people + 1), people, inside),
                binom.pmf(np.arange(n - people + 1), n - people, outside),
            )
        else:
            truth = share
            chance = binom.pmf(np.arange(n + 1), n, outside + share * (inside - outside))
        out.append(float(chance[(low <= truth + 1e-12) & (truth <= high + 1e-12)].sum()))
    return out


@pytest.mark.grid
@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("estimand", ["population", "respondents"])
def test_the_default_covers_as_enumerated(name: str, estimand: Estimand):
    least = 0.935 if estimand == "population" else 0.933
    assert min(coverage(name, 60, estimand, "padded")) >= least
    assert min(coverage(name, 60, estimand, "exact")) >= 0.95


def test_the_distribution_of_decisive_reports_is_the_convolution():
    rng = np.random.default_rng(4)
    for _ in range(60):
        n = int(rng.integers(1, 60))
        a, (other, own) = int(rng.integers(0, n + 1)), np.sort(rng.random(2))
        other, own = (0.0, own) if rng.random() < 0.2 else (other, own)
        chance = np.convolve(
            binom.pmf(np.arange(a + 1), a, own), binom.pmf(np.arange(n - a + 1), n - a, other)
        )
        for d in (-1, 0, n // 2, n):
            arguments = (np.array([float(x)]) for x in (a, n, own, other, d))
            found = below(*arguments)
            np.testing.assert_allclose(found, chance[: d + 1].sum(), atol=1e-12)


def test_enumerated_bounds_are_the_shares_whose_tails_are_not_too_small():
    n, own, other, level = 30, 0.9, 0.2, 0.1
    for d in range(n + 1):
        tosses = Tosses(*(np.array([float(x)]) for x in (n, d, own, other)))
        low, high = enumerated(tosses, level)
        kept = []
        for a in range(n + 1):
            chance = np.convolve(
                binom.pmf(np.arange(a + 1), a, own), binom.pmf(np.arange(n - a + 1), n - a, other)
            )
            if min(chance[d:].sum(), chance[: d + 1].sum()) > level / 2:
                kept.append(a)
        if kept:
            assert (round(low[0] * n), round(high[0] * n)) == (kept[0], kept[-1])


def form(mechanism: Mechanism, counts: list[int], **options: Any) -> list[str]:
    statistic = np.array(counts, dtype=np.int64)
    found: Estimate = estimate_values(mechanism, statistic, sum(counts), **options)
    return [str(one) for one in found.form]


def test_every_entry_says_how_it_was_bounded():
    line = RandomizedResponse(1.0, Blocks.one(3))
    blocks = RandomizedResponse(1.0, Blocks(np.array([0, 0, 0, 1, 1, 2])))
    population: Any = {"estimand": "population"}
    assert form(line, [400, 300, 10], **population) == ["wilson", "wilson", "clopper-pearson"]
    assert set(form(line, [400, 300, 10], simultaneous=True, **population)) == {"clopper-pearson"}
    assert form(line, [400, 300, 10]) == ["score"] * 3
    assert form(line, [4, 3, 1]) == ["enumerated"] * 3
    assert form(line, [400, 300, 10], method="exact") == ["enumerated"] * 3
    assert form(line, [400, 300, 10], method="normal") == ["normal"] * 3
    counts = [90, 80, 30, 9, 1, 40]
    found = form(blocks, counts, **population)
    assert found == ["block"] * 3 + ["product"] * 2 + ["wilson"]
    assert form(blocks, counts) == ["score"] * 3 + ["enumerated"] * 2 + ["known"]
    sets = [np.arange(6), np.array([0, 1, 2]), np.array([0, 3])]
    statistic = np.array(counts)
    of_people = estimate_sets(blocks, statistic, 250, sets)
    assert list(of_people.form) == ["known", "known", "noise"]
    of_all = estimate_sets(blocks, statistic, 250, sets, estimand="population")
    assert list(of_all.form) == ["known", "wilson", "padded"]
    few = estimate_sets(blocks, np.array([1, 1, 0, 0, 1, 0]), 3, sets[2:])
    assert list(few.form) == ["range"]
    # So few reports leave the whole range of a share.
    assert (few.low[0], few.high[0]) == (0.0, 1.0)


@pytest.mark.parametrize("estimand", ["population", "respondents"])
@pytest.mark.parametrize("method", ["padded", "exact"])
def test_bounds_are_clipped_to_possible_shares_and_forgeries_counted_before(
    estimand: Estimand, method: Method
):
    mechanism = RandomizedResponse(1.0, Blocks(np.array([0, 0, 0, 1, 1])))
    for counts in product((0, 3, 60), repeat=3):
        statistic = np.array([*counts, 20, 30])
        n = int(statistic.sum())
        found = estimate_values(mechanism, statistic, n, estimand=estimand, method=method)
        assert (found.low >= 0.0).all()
        assert (found.low <= found.high).all()
        most = statistic[:3].sum() / n if estimand == "respondents" else 1.0
        assert (found.high[:3] <= most + 1e-12).all()
        room = np.minimum(found.value - found.lowest, found.highest - found.value)
        number = np.floor(np.maximum(room, 0.0) / found.influence) + 1.0
        possible = number <= n
        np.testing.assert_array_equal(forged_reports(found)[possible], number[possible])
