"""Estimates of k values with a known prior, the best channel for them, and what a report tells."""

import json
import math
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldpstream.agents.cli.python.plans import plan
from ldpstream.agents.cli.python.reports import define_collection
from ldpstream.agents.config.errors import ConfigError
from ldpstream.agents.config.privacy.certificate import certify_collection
from ldpstream.agents.document.build import build_document
from ldpstream.agents.state.context import WindowTotals
from ldpstream.estimators.design.cone import DesignError
from ldpstream.estimators.design.mmse import best_mmse
from ldpstream.estimators.design.optimise import histogram
from ldpstream.estimators.design.realise import realise
from ldpstream.estimators.lip.known_prior import Bayes
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.channels.information import most_information, mutual_information
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.families.binary import Binary
from ldpstream.mechanisms.families.design.mechanism import RandomizedResponse
from ldpstream.mechanisms.families.lip.domain import Prior
from ldpstream.mechanisms.families.lip.lip import Lip
from ldpstream.mechanisms.policies.prior import PriorPolicy
from ldpstream.mechanisms.wire.spec import CollectionSpec

SHARES = (Fraction(1, 2), Fraction(3, 10), Fraction(3, 20), Fraction(1, 20))
PI = np.array([0.5, 0.3, 0.15, 0.05])
LINE = np.arange(4.0)
COLLECTION: dict[str, Any] = {
    "mechanism": "randomized-response",
    "epsilon": 0.8,
    "domain": {"size": 4},
}


def spec(tmp_path: Path = Path(), **keys: object) -> CollectionSpec:
    return CollectionSpec.from_mapping("c", {**COLLECTION, **keys}, base=tmp_path)


def response(epsilon: float) -> Bayes:
    return Bayes.of(RandomizedResponse(epsilon, Blocks.one(4)), PI)


def test_the_errors_and_the_estimate_of_randomised_response():
    bayes = response(0.8)
    singles = np.eye(4)
    assert bayes.errors(singles)[[0, 3]] == pytest.approx([0.232598, 0.046717], abs=5e-7)
    assert bayes.errors(LINE[None]) == pytest.approx([0.749293], abs=5e-7)
    means, _ = bayes.moments(singles)
    assert means[0] == pytest.approx([0.689974, 0.365587, 0.422358, 0.471131], abs=5e-7)
    found = bayes.estimate(np.stack([singles[0], LINE]), np.array([400, 310, 180, 110]))
    assert np.array(found).ravel() == pytest.approx(
        [0.517171, 0.706079, 0.015126, 0.026442], abs=5e-7
    )
    assert np.isnan(bayes.estimate(singles, np.zeros(4, dtype=np.int64))).all()


def test_the_posterior_is_that_of_an_enumeration_in_rationals():
    """Of three respondents of whom the reports are known, over all their values."""
    channel = RandomizedResponse(0.8, Blocks.one(4)).channel()
    reports, total = (0, 0, 2), Fraction(0)
    mean = square = Fraction(0)
    for values in product(range(4), repeat=3):
        chance = Fraction(1)
        for value, report in zip(values, reports, strict=True):
            chance *= SHARES[value] * channel.rows[value][report]
        share = Fraction(values.count(0), 3)
        total, mean, square = total + chance, mean + chance * share, square + chance * share**2
    counts = np.bincount(reports, minlength=4)
    found = response(0.8).estimate(np.eye(4)[:1], counts)
    assert found[0][0] == pytest.approx(float(mean / total), rel=1e-12)
    assert found[1][0] ** 2 == pytest.approx(float(square / total - (mean / total) ** 2), rel=1e-9)


def test_a_binary_prior_gives_the_estimate_of_lip():
    bayes = Bayes.of(Lip(Prior(0.1), (1.0,)), np.array([0.9, 0.1]))
    assert bayes.errors(np.array([[0.0, 1.0]]))[0] == pytest.approx(
        0.09 - (0.1 - 0.1 / math.e) * (min(0.1 * math.e, 1 - 0.9 / math.e) - 0.1), rel=1e-9
    )


@pytest.mark.parametrize(
    ("epsilon", "least", "plain"),
    [(0.4, 0.593878, 0.626457), (0.8, 0.502091, 0.597594), (2.0, 0.203650, 0.399280)],
)
def test_the_best_channel_is_a_linear_program(epsilon: float, least: float, plain: float):
    design, found = best_mmse(PriorPolicy(epsilon, SHARES), histogram(4), PI)
    assert found == pytest.approx(least, abs=5e-7)
    assert response(epsilon).errors(np.eye(4)).sum() == pytest.approx(plain, abs=5e-7)
    realised = realise(design)
    bayes = Bayes(np.array(realised.matrix), PI)
    assert bayes.errors(np.eye(4)).sum() == pytest.approx(least, rel=1e-5)


@pytest.mark.parametrize(("prior", "epsilon"), [(0.5, 1.0), (0.1, 1.0), (0.01, 2.0), (0.3, 4.0)])
def test_the_program_has_the_closed_form_of_two_values(prior: float, epsilon: float):
    shares = (1 - Fraction(repr(prior)), Fraction(repr(prior)))
    policy = PriorPolicy(epsilon, shares)
    _, found = best_mmse(policy, histogram(2), np.array([1 - prior, prior]))
    low = max(math.exp(-epsilon) * prior, 1 - math.exp(epsilon) * (1 - prior))
    high = min(math.exp(epsilon) * prior, 1 - math.exp(-epsilon) * (1 - prior))
    assert found / 2 == pytest.approx(
        prior * (1 - prior) - (prior - low) * (high - prior), abs=1e-9
    )


def test_many_values_have_no_linear_program():
    shares = (Fraction(1, 13),) * 13
    with pytest.raises(DesignError, match="at most 12 values, got 13"):
        best_mmse(PriorPolicy(1.0, shares), histogram(13), np.full(13, 1 / 13))


def lip_loss(channel: np.ndarray, prior: np.ndarray) -> float:
    return np.abs(np.log(channel / (prior @ channel))).max()


def test_what_a_report_tells():
    channel = response(0.8).channel
    assert mutual_information(channel, PI) == pytest.approx(0.060948, abs=5e-7)
    assert lip_loss(channel, PI) == pytest.approx(0.740527, abs=5e-7)
    even = np.array([0.9, 0.1])
    best, warner = Lip(Prior(0.1), (1.0,)).table, Binary(1.0, 1.0).table
    assert best is not None
    assert warner is not None
    assert mutual_information(best, even) == pytest.approx(0.052520, abs=5e-7)
    assert mutual_information(warner, even) == pytest.approx(0.040959, abs=5e-7)


def test_no_channel_of_a_policy_tells_more_than_the_bound():
    rng = np.random.default_rng(1)
    for _ in range(200):
        channel = rng.dirichlet(np.full(5, rng.choice([0.3, 1.0, 5.0])), 3)
        prior = rng.dirichlet(np.ones(3))
        most = most_information(lip_loss(channel, prior))
        assert mutual_information(channel, prior) <= most * (1 + 1e-12)
    flip = np.array([[1 / (1 + math.e), math.e / (1 + math.e)]])
    channel = np.concatenate([flip, flip[:, ::-1]])
    assert lip_loss(channel, np.array([0.5, 0.5])) < 1.0


def test_counts_of_the_prior_are_rarely_called_wrong():
    """At the significance .001 of 4,000 windows: 15 or more false ones have probability 3e-5."""
    bayes, rng = response(0.8), np.random.default_rng(7)
    for n in (3, 30, 3000):
        counts = rng.multinomial(n, bayes.chances, 4000)
        assert sum(bayes.p_value(each) < 0.001 for each in counts) < 15
    assert bayes.p_value(np.array([100, 100, 100, 700])) < 1e-12
    assert bayes.p_value(np.zeros(4, dtype=np.int64)) == 1.0
    impossible = Bayes(np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([0.5, 0.5]))
    assert impossible.p_value(np.array([5, 1])) == 0.0


def test_a_prior_is_configured_by_its_key_or_its_policy(tmp_path: Path):
    (tmp_path / "prior.csv").write_text("0.5\n0.30\n0.15\n0.05\n")
    listed = [0.5, 0.3, 0.15, 0.05]
    plain = spec()
    for given in (listed, {"file": "prior.csv"}):
        known = spec(tmp_path, prior=given)
        assert known.prior.shares == SHARES
        assert known.prior.policy is None
        private = spec(tmp_path, policy={"prior": given})
        assert private.prior.policy == PriorPolicy(0.8, SHARES)
        # Devices need not agree on it: they report in the same way.
        assert known.fingerprint == private.fingerprint == plain.fingerprint


def test_a_policy_with_a_prior_needs_no_counts():
    subsets = spec(mechanism="subset-selection", policy={"prior": PI.tolist()})
    assert subsets.prior.policy == PriorPolicy(0.8, SHARES)
    assert subsets.prior.shares is None
    assert "information" not in certify_collection("c", subsets, None)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"prior": 0.1}, "c.prior: expected a list of one share a value"),
        ({"prior": [0.5, 0.5]}, "c.prior: expected 4 shares, one for each value, got 2"),
        ({"prior": [0.5, 0.3, 0.1, 0.05]}, "c.prior: expected shares with the sum 1, got 0.95"),
        ({"prior": [0.5, 0.5, 0.0, "x"]}, r"c.prior\[2\]: expected a share above 0"),
        ({"policy": {"prior": {"file": "none.csv"}}}, "a readable file, got 'none.csv'"),
        ({"policy": {"prior": [1]}, "epsilon": None}, "expected 4 shares"),
        (
            {"mechanism": "subset-selection", "prior": [0.25] * 4},
            "c.mechanism: expected one that counts at most 2,048 different reports",
        ),
        (
            {"mechanism": "l1-geometric", "policy": {"prior": [0.25] * 4}},
            "at most epsilon = 0.8 between any two values",
        ),
        (
            {"policy": {"prior": [0.25] * 4}, "prior": [0.25] * 4},
            "no prior beside that of the policy",
        ),
    ],
)
def test_a_prior_that_cannot_be_used_is_refused(
    tmp_path: Path, keys: dict[str, object], message: str
):
    with pytest.raises(SpecError, match=message):
        spec(tmp_path, **keys)


def test_a_certificate_says_what_beliefs_become():
    """[CA] Proposition 3 and the LIP that follows, in words and numbers."""
    proved = certify_collection("c", spec(prior=[0.5, 0.3, 0.15, 0.05]), None)
    information: Any = proved["information"]
    assert information["nats"] == pytest.approx(0.060948, abs=5e-7)
    assert information["nats"] <= information["at_most_nats"]
    assert information["lip"]["low"] <= 0.7405270562399871 <= information["lip"]["high"]
    listed: Any = proved["odds"]
    (odds,) = listed
    channel = RandomizedResponse(0.8, Blocks.one(4)).channel()
    for before, after in odds["posteriors"]:
        p = Fraction(before)
        # Over all reports, in rationals: of two values, how likely the first can become.
        worst = max(
            p * channel.rows[0][y] / (p * channel.rows[0][y] + (1 - p) * channel.rows[1][y])
            for y in range(4)
        )
        assert float(worst) <= after <= float(worst) * (1 + 1e-12)
    assert odds["said"].startswith(
        "No report is more than 2.22555 times likelier for a value than for another against which "
        "it has a budget of 0.8: whatever was known before, even odds"
    )
    lip = CollectionSpec.from_mapping(
        "c",
        {"mechanism": "lip", "epsilon": 1.0, "prior": 0.1, "domain": {"size": 2}},
        base=Path(),
    )
    said = json.dumps(certify_collection("c", lip, None))
    assert "If the prior is right, one report multiplies or divides" in said
    assert "from 10% to at most 27.19%" in said


def test_documents_and_plans_use_the_known_prior(tmp_path: Path):
    keys = {**COLLECTION, "policy": {"prior": PI.tolist()}, "minimum": 0}
    queries = {"top": 2, "ranges": {"low": [0, 1]}, "linear": {"mean": [0, 1, 2, 3]}}
    collection = define_collection("c", publish=queries, **keys)
    for counts, wrong in ([310, 260, 226, 204], False), ([100, 100, 100, 700], True):
        totals = WindowTotals(0, 3_600_000, np.array(counts), 1000, late=0, rejected=0)
        document = build_document(collection, totals, window=None, final=True)
        known, shares = document.known_prior, response(0.8).estimate(np.eye(4), np.array(counts))[0]
        assert known is not None
        assert known.wrong is wrong
        found = [one.mean for one in (*known.values, *known.ranges, *known.linear)]
        places = [one.name for one in known.values]
        truth = [*(shares[place] for place in places), shares[:2].sum(), shares @ LINE]
        assert found == ([None] * 4 if wrong else pytest.approx(truth, rel=1e-12))
    file = tmp_path / "best.channel"
    planned = plan(collection, respondents=1000, objective="mmse", channel_file=file)
    assert planned.prior == "the collection's prior"
    assert planned.optimum is not None
    assert planned.optimum.status == "proved"
    assert planned.optimum.bound == pytest.approx(math.sqrt(0.502091 / 4 / 1000), rel=1e-5)
    plain = next(one for one in planned.mechanisms if one.configured)
    assert plain.error == pytest.approx(math.sqrt(0.597594 / 4 / 1000), rel=1e-5)
    assert plain.information == pytest.approx(0.060948 / math.log(2), rel=1e-4)
    # The channel keeps the policy, which its file states and the collection asks for.
    best = define_collection("c", **{**keys, "mechanism": "optimal", "channel": str(file)})
    assert best.spec.prior.policy == best.spec.mechanism.policy == PriorPolicy(0.8, SHARES)
    assert certify_collection("c", best.spec, None)["pass"]
    other = {**keys, "mechanism": "optimal", "channel": str(file), "epsilon": 0.7}
    with pytest.raises(ConfigError, match="optimal may lose more between"):
        define_collection("c", **other)
