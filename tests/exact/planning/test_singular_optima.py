"""The best channels for queries that do not tell all values apart."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from ldpstream.estimators.design.optimise import Design, optimise, sets
from ldpstream.estimators.design.realise import realise, write_channel
from ldpstream.estimators.planning.optimum import find_optimum
from ldpstream.estimators.planning.workload import PlannedWorkload, uniform_shares
from ldpstream.mechanisms.base.arrays import Floats, Integers
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from ldpstream.mechanisms.families.optimal import Optimal
from ldpstream.mechanisms.policies.graph import GraphPolicy
from ldpstream.mechanisms.policies.policy import BlockPolicy, HighLowPolicy
from tests.exact.specs import classical
from tests.stream.cli import configured, invoke, refused

ATOMS = np.array([4, 4, 4, 4, 8]) / 24
RANGES = [np.array(members) for members in ([0, 1], [1, 2, 3], [3, 4])]


def mean_error(design: Design) -> tuple[float, float]:
    """Return a query's variance for respondents, and the bound for all channels."""
    assert design.gap is not None
    queries = design.workload.queries
    return design.respondents / queries, (design.respondents - design.gap) / queries


@pytest.mark.parametrize(("epsilon", "expected"), [(0.5, 10.752), (1.0, 2.61243), (3.0, 0.14455)])
def test_the_optimum_on_atoms_is_that_of_the_table(epsilon: float, expected: float):
    design = optimise(classical(epsilon, 5), sets(5, RANGES), ATOMS)
    variance, bound = mean_error(design)
    assert design.status == "proved"
    assert variance == pytest.approx(expected, rel=6e-5)
    assert variance * (1 - 2e-4) <= bound <= variance


def test_the_optimum_on_all_values_is_that_on_atoms():
    """Of six values, of which the last two are an atom: their atoms have the shares of `ATOMS`."""
    sums = [np.arange(0, 2), np.arange(1, 4), np.arange(3, 6)]
    variance, bound = mean_error(optimise(classical(1.0, 6), sets(6, sums), seconds=120.0))
    assert bound <= 2.61243 * (1 + 1e-6)
    assert bound >= 2.61243 * (1 - 4e-3)
    assert 2.6124 <= variance <= 2.64


def population(channel: Floats, queries: list[Integers], shares: Floats) -> float:
    """Return the least total variance of these queries' estimates by a channel `(k, y)`.

    A channel that does not answer one has none.
    """
    reports = shares @ channel
    columns = channel[:, reports > 0] / reports[reports > 0]
    information = (columns * reports[reports > 0]) @ columns.T
    inverse, total = np.linalg.pinv(information, rcond=1e-11, hermitian=True), 0.0
    for members in queries:
        weights = np.zeros(len(shares))
        weights[members] = 1.0
        if np.abs(information @ inverse @ weights - weights).max() > 1e-6:
            return np.inf
        total += float(weights @ inverse @ weights - (weights @ shares) ** 2)
    return total


@pytest.mark.parametrize("seed", range(6))
def test_no_channel_is_below_the_bound_not_even_a_singular_one(seed: int):
    """Random channels, merged ones among them, which answer the queries with singular I."""
    rng = np.random.default_rng(seed)
    epsilon, k = float(rng.uniform(0.5, 2.5)), 5
    shares = rng.dirichlet(np.full(k, 3.0))
    queries = [np.array([0, 1]), np.array([3, 4])][: 1 + seed % 2]
    design = optimise(classical(epsilon, k), sets(k, queries), shares)
    assert design.gap is not None
    bound = design.population - design.gap
    found = population((design.columns * design.weights[:, None]).T, queries, shares)
    assert found == pytest.approx(design.population, rel=1e-5)
    finite = 0
    for _ in range(200):
        atoms = [[0, 0, 1, 1, 1], [0, 0, 1, 2, 2], list(range(k))][rng.integers(0, 3)]
        outputs = int(rng.integers(2, 9))
        high = rng.integers(0, 2, (max(atoms) + 1, outputs))
        row = np.where(high, np.exp(epsilon), 1.0) * rng.dirichlet(np.ones(outputs))
        # One more report makes all rows sum to 1; it keeps epsilon where it is nearly constant.
        row *= 0.5 / row.sum(axis=1).max()
        merged = np.hstack([row, 1.0 - row.sum(axis=1, keepdims=True)])[atoms]
        if (merged.max(axis=0) > np.exp(epsilon) * merged.min(axis=0)).any():
            continue
        other = population(merged, queries, shares)
        finite += np.isfinite(other)
        assert other >= bound * (1 - 1e-9)
    assert finite > 10


def test_realised_channels_answer_every_query():
    design = optimise(classical(1.0, 5), sets(5, RANGES), ATOMS)
    mechanism = Optimal(realise(design))
    assert mechanism.certify().passed
    assert np.linalg.matrix_rank(np.array(design.columns)) == 5
    single = mechanism.decoder.noise(np.eye(5)[0])
    assert np.isfinite(single).all()
    for members in RANGES:
        weights = np.zeros(5)
        weights[members] = 1.0
        assert mechanism.decoder.noise(weights) @ ATOMS < single @ ATOMS


def test_blocks_of_which_nothing_is_asked_have_no_variance():
    policy = BlockPolicy(1.0, Blocks(np.array([0, 0, 0, 1, 1, 2])))
    alone = optimise(policy, sets(6, [np.array([0])]))
    (share, bound) = mean_error(alone)
    # The first value among three has the share 1/2 of the population.
    three = optimise(classical(1.0, 3), sets(3, [np.array([0])]))
    assert share == pytest.approx(three.respondents / 2, rel=1e-3)
    assert bound <= share
    whole = optimise(policy, sets(6, [np.arange(3), np.array([5])]))
    assert whole.respondents == pytest.approx(0.0, abs=1e-9)


def test_metrics_have_a_best_channel_for_few_queries_too():
    workload = PlannedWorkload(
        (8,), ordered=True, shares=uniform_shares(8), ranges=(np.arange(3),), objective="published"
    )
    optimum = find_optimum(L1Geometric(0.3, (8,)).policy, workload, seconds=5.0)
    own = L1Geometric(0.3, (8,)).decoder.noise((np.arange(8) < 3).astype(float)).mean()
    assert optimum.variance < 0.7 * own


TOML = """
[collection.hours]
mechanism = "{mechanism}"
{keys}
domain = {{ size = 24 }}
workload = "published"
minimum = 1
publish = {{ ranges = {{ night = [0, 7], day = [4, 15], late = [12, 23] }} }}
"""


def test_a_planned_channel_reports_on_atoms(tmp_path: Path):
    file = configured(tmp_path, TOML.format(mechanism="subset-selection", keys="epsilon = 1.0"))
    counts = tmp_path / "counts.txt"
    counts.write_text("4\n4\n4\n4\n8\n")
    best, respondents = tmp_path / "best.channel", "10000"
    words = ("--respondents", respondents, "--prior", str(counts), "--optimise", str(best))
    result = invoke("plan", "-c", file, "hours", *words, "--json")
    assert result.exit_code == 0, result.output
    plan = json.loads(result.stdout)
    assert plan["optimum"]["status"] == "proved"
    assert plan["optimum"]["error"] == pytest.approx(np.sqrt(2.61243 / 10_000), rel=1e-4)
    own = {one["mechanism"]: one["error"] for one in plan["mechanisms"]}["subset-selection"]
    assert own == pytest.approx(np.sqrt(3.45479 / 10_000), rel=1e-4)
    text = TOML.format(mechanism="optimal", keys='channel = "best.channel"')
    file = configured(tmp_path, text)
    values = np.random.default_rng(4).integers(0, 24, 20_000)
    reports = tmp_path / "reports.jsonl"
    lines = "\n".join(map(str, values.tolist()))
    reports.write_text(invoke("privatize", "-c", file, "hours", stdin=lines).stdout)
    document = json.loads(invoke("estimate", "--json", "-c", file, "hours", str(reports)).stdout)
    for entry, (first, last) in zip(document["ranges"], [(0, 7), (4, 15), (12, 23)], strict=True):
        share = float(np.mean((values >= first) & (values <= last)))
        assert abs(entry["share"] - share) < 6 * entry["se"]  # fails with probability below 1e-8


def test_a_channel_of_another_policy_does_not_report_on_atoms(tmp_path: Path):
    """Two budgets are no LDP, and those of chains are no block: 0 and 2 are not protected."""
    text = TOML.format(mechanism="optimal", keys='channel = "best.channel"')
    file = configured(tmp_path, text)
    chain = GraphPolicy(5, tuple((x, x + 1, Fraction(1)) for x in range(4)))
    for policy in (chain, HighLowPolicy(1.0, 5, frozenset({0}))):
        write_channel(tmp_path / "best.channel", optimise(policy, sets(5, RANGES), seconds=2.0))
        said = refused(invoke("certify", "-c", file))
        assert (
            "collection.hours.channel: expected a channel with the same budget for any two" in said
        )
