"""`l1-bits` and `l1-geometric` under `epsilon * |x - x'|_p`: kept at every pair, and tight."""

import dataclasses
import math
from fractions import Fraction
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.exact.dyadic import budget, exp_bounds, float_above
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.l1 import bits as l1_bits
from ldpstream.mechanisms.families.l1 import geometric as l1_geometric
from ldpstream.mechanisms.families.l1.bits import L1Bits
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from ldpstream.mechanisms.policies.metric import MetricPolicy, keeps_lp, l1_epsilon
from ldpstream.mechanisms.wire.spec import CollectionSpec
from tests.ratios import in_units, is_within

CASES = [
    L1Geometric(1.0, (4, 5), p=2),
    L1Geometric(0.3, (8, 8), p=2),
    L1Geometric(2.0, (3, 1, 3), p=3),
    L1Geometric(0.5, (2, 2, 2, 2), p=2),
    L1Geometric(0.5, (3, 4), p=math.inf),
    L1Geometric(0.7, (9,), p=2),
    L1Bits(0.7, (9,)),
    L1Bits(0.7, (3, 4)),
    L1Bits(1.0, (4, 5), p=2),
    L1Bits(2.0, (3, 1, 3), p=3),
    L1Bits(0.5, (3, 4), p=math.inf),
]
EVERY = pytest.mark.parametrize("mechanism", CASES, ids=lambda m: f"{m.id}-{m.shape}-l{m.p}")


def prove_by_structure(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (l1_bits, l1_geometric):
        monkeypatch.setattr(module, "ENUMERATION_LIMIT", 0)


@pytest.mark.grid
@EVERY
def test_every_pair_at_every_output_is_within_the_lp_budget(mechanism: L1Bits | L1Geometric):
    rows = in_units(mechanism.channel().rows)
    floors: dict[Fraction, Fraction] = {}
    for x, z in permutations(range(mechanism.size), 2):
        d = np.subtract(np.unravel_index(x, mechanism.shape), np.unravel_index(z, mechanism.shape))
        entry = mechanism.policy.entry(x, z)
        if entry not in floors:
            floors[entry] = exp_bounds(entry)[0]
        assert float(entry) == pytest.approx(mechanism.epsilon * np.linalg.norm(d, mechanism.p))
        assert is_within(rows[x], rows[z], floors[entry]), (x, z)


@pytest.mark.grid
@EVERY
def test_both_proofs_pass(mechanism: L1Bits | L1Geometric, monkeypatch: pytest.MonkeyPatch):
    enumerated = mechanism.certify()
    prove_by_structure(monkeypatch)
    structured = mechanism.certify()
    assert (enumerated.proof, structured.proof) == ("enumeration", "structure")
    assert enumerated.passed
    assert structured.passed
    assert enumerated.policy == structured.policy
    # The two losses that the proof by structure shows are among the enumerated ones.
    assert set(structured.losses) <= set(enumerated.losses)
    # A step in every dimension uses the budget up.
    assert structured.losses[-1].low == pytest.approx(
        float(structured.losses[-1].budget), rel=1e-12
    )


@pytest.mark.grid
@EVERY
def test_a_step_with_too_much_fails(
    mechanism: L1Bits | L1Geometric, monkeypatch: pytest.MonkeyPatch
):
    broken = dataclasses.replace(mechanism)
    vars(broken)["threshold"] += 1 if isinstance(mechanism, L1Bits) else -8
    enumerated = broken.certify()
    assert not enumerated.passed
    assert "at output" in str(enumerated.violation)
    prove_by_structure(monkeypatch)
    structured = broken.certify()
    assert not structured.passed
    assert structured.violation is not None


def test_the_last_entry_is_never_sent_because_it_is_the_same_for_all():
    """Reports would be longer with it, and losses the same: it is +1 for every value."""
    mechanism = L1Bits(1.0, (4, 3))
    assert mechanism.report_bits == 3 + 2
    t = Fraction(mechanism.threshold, WORD - mechanism.threshold)
    assert mechanism.channel().worst_ratios(mechanism.policy) == {Fraction(1): t}


def test_the_whole_epsilon_a_step_breaks_the_l2_policy_across(monkeypatch: pytest.MonkeyPatch):
    mechanism = L1Geometric(1.0, (4, 5), p=2)
    violation = L1Geometric(1.0, (4, 5)).channel().satisfies(mechanism.policy)
    assert violation is not None
    steps = mechanism.policy.steps(violation.value, violation.other)
    assert min(steps) > 0
    vars(mechanism.policy)["step"] = budget(1.0)
    prove_by_structure(monkeypatch)
    assert not mechanism.certify().passed


@pytest.mark.parametrize("p", [2, 3, math.inf])
@pytest.mark.parametrize("dimensions", [2, 3, 5])
def test_hoelder_is_checked_exactly(p: float, dimensions: int):
    epsilon = Fraction(1)
    step = l1_epsilon(epsilon, dimensions=dimensions, p=p)
    assert keeps_lp(step, epsilon, dimensions=dimensions, p=p)
    more = step + Fraction(1, WORD)
    assert not keeps_lp(more, epsilon, dimensions=dimensions, p=p)


@pytest.mark.parametrize("shape", [(2, 2, 2), (5, 5, 5)])
def test_no_loss_is_shown_above_its_budget(shape: tuple[int, ...]):
    """The float nearest to the root of 3 is below it, and hence below a loss beside it."""
    for loss in L1Geometric(1.0, shape, p=2).certify().losses:
        assert loss.high <= float_above(loss.budget)
        shown = loss.to_json()
        assert shown["high"] <= shown["budget"]
        assert shown["budget"] == pytest.approx(float(loss.budget), rel=1e-15)


@pytest.mark.slow
def test_a_loss_of_many_steps_at_once_is_shown_at_the_largest_epsilons():
    """The farthest of 2 x 24 values realise 24 steps of 64 log 2, a ratio of 2^1536."""
    certificate = L1Geometric(1e5, (2, 24), p=math.inf).certify()
    assert (certificate.passed, certificate.proof) == (True, "enumeration")
    assert certificate.losses[-1].ratio == WORD**24
    assert certificate.loss_high == pytest.approx(24 * 64 * math.log(2))


def test_p_is_a_part_of_the_spec_and_of_the_certificate():
    one, two = L1Geometric(1.0, (70, 70)), L1Geometric(1.0, (70, 70), p=2)
    assert "p" not in one.parameters()
    assert two.parameters() == {
        **one.parameters(), "p": 2.0, "threshold": hex(two.threshold)
    }  # fmt: skip
    assert L1Geometric(1.0, (7, 7), p=math.inf).parameters()["p"] == "inf"
    assert two.certify().policy["metric"] == "l2"
    with pytest.raises(SpecError, match=r"^p: expected a whole number in 1\.\.64, or inf"):
        L1Geometric(1.0, (7, 7), p=0.5)


def spec(folder: Path, **keys: object) -> CollectionSpec:
    (folder / "edges.csv").write_text("0,0,0,1,0.5\n", "utf-8")
    given = {"mechanism": "l1-geometric", "domain": {"grid": [4, 5]}, "epsilon": 0.5, **keys}
    return CollectionSpec.from_mapping(
        "c", {key: value for key, value in given.items() if value is not None}, base=folder
    )


@pytest.mark.parametrize("kind", [L1Bits, L1Geometric], ids=lambda kind: kind.id)
def test_a_collection_asks_for_a_metric(kind: type[L1Bits | L1Geometric], tmp_path: Path):
    own = {"mechanism": kind.id}
    plain = spec(tmp_path, **own)
    assert spec(tmp_path, **own, policy={"metric": "l1"}).fingerprint == plain.fingerprint
    two = spec(tmp_path, **own, policy={"metric": "lp", "p": 2})
    assert two.fingerprint == spec(tmp_path, **own, policy={"metric": "l2"}).fingerprint
    assert two.fingerprint != plain.fingerprint
    assert two.mechanism == kind(0.5, (4, 5), p=2)
    assert two.mechanism.policy == MetricPolicy(0.5, (4, 5), p=2)
    bins = {"interval": [[0.0, 8.0], [0.0, 5.0]], "bins": [4, 5]}
    assert spec(tmp_path, **own, domain=bins, policy={"metric": "l2"}).mechanism == kind(
        0.5, (4, 5), (2.0, 1.0), p=2
    )


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            {"policy": {"blocks": 2}},
            r'^collection\.c\.policy: expected metric = "l1", "l2" or "lp"',
        ),
        (
            {"policy": {"metric": "graph", "file": "edges.csv"}, "epsilon": None},
            r'^collection\.c\.policy: expected metric = "l1", "l2" or "lp"',
        ),
        (
            {"policy": {"metric": "l2", "scale": [1, 2]}},
            r"^collection\.c\.policy\.scale: expected no scale with l1-geometric",
        ),
        (
            {"policy": {"metric": "l2"}, "epsilon": None},
            r"^collection\.c\.epsilon: expected a number above 0 with this policy, got none",
        ),
        (
            {"policy": {"metric": "l2"}, "domain": {"values": ["a", "b"]}},
            r"^collection\.c\.domain: expected an ordered domain with l1-geometric",
        ),
        ({"policy": "l2"}, r"^collection\.c\.policy: expected a table with one of"),
    ],
)
def test_a_policy_that_it_cannot_keep_is_refused(
    tmp_path: Path, keys: dict[str, object], message: str
):
    with pytest.raises(SpecError, match=message):
        spec(tmp_path, **keys)
