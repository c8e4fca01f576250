"""The keys of a collection with `matrix`: every form, and every refusal by name."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.accuracy.repeated import alphas_of

from ldpstream.mechanisms import CollectionSpec, SpecError
from ldpstream.mechanisms.families.matrix.matrix import Matrix
from ldpstream.mechanisms.policies.metric import MetricPolicy
from ldpstream.mechanisms.policies.policy import BlockPolicy

BASE = {"mechanism": "matrix", "epsilon": 1.0, "strategy": "prefix", "domain": {"size": 4}}
LABELS = {"values": ["a", "b", "c"]}
PLANE = {"grid": [2, 3]}


def make(base: Path, **changes: Any) -> CollectionSpec:
    table = {key: value for key, value in (BASE | changes).items() if value is not None}
    return CollectionSpec.from_mapping("ages", table, base=base)


def mechanism(base: Path, **changes: Any) -> Matrix:
    found = make(base, **changes).mechanism
    assert isinstance(found, Matrix)
    return found


def test_the_policy_is_by_default_epsilon_a_step_or_between_labels(tmp_path: Path):
    assert mechanism(tmp_path).policy == MetricPolicy(1.0, (4,))
    found = mechanism(tmp_path, domain=LABELS, strategy="identity").policy
    assert isinstance(found, BlockPolicy)
    assert (found.epsilon, found.unprotected_pairs) == (1.0, 0)
    plane = mechanism(tmp_path, domain=PLANE, strategy="identity")
    assert plane.policy == MetricPolicy(1.0, (2, 3))


def test_policies_of_every_form_decide_the_scales(tmp_path: Path):
    (tmp_path / "edges.csv").write_text("a,b,1\nb,c,0.5\n", "utf-8")
    graph = {"metric": "graph", "file": "edges.csv"}
    found = mechanism(tmp_path, domain=LABELS, strategy="identity", policy=graph, epsilon=None)
    # Rows a and b share one step, b and c the smaller one: u + u <= 0.5.
    assert alphas_of(found.rows).tolist() == pytest.approx([math.exp(-0.25)] * 3)
    (tmp_path / "policy.csv").write_text("0,1,inf\n2,0,1\ninf,3,0\n", "utf-8")
    file = {"file": "policy.csv"}
    found = mechanism(tmp_path, domain=LABELS, strategy="identity", policy=file, epsilon=None)
    assert alphas_of(found.rows).tolist() == pytest.approx([math.exp(-0.5)] * 3)
    found = mechanism(tmp_path, policy={"metric": "l2"}, domain=PLANE, strategy="identity")
    assert found.policy == MetricPolicy(1.0, (2, 3), p=2)
    found = mechanism(tmp_path, strategy="haar", policy={"blocks": 2}, domain={"size": 4})
    assert len(found.disclosed()) == 1


@pytest.mark.parametrize(
    ("policy", "other"),
    [
        ({"blocks": [[0, 1], [2, 3]]}, {"blocks": [[0, 2], [1, 3]]}),
        ({"sensitive": [0]}, {"sensitive": [1]}),
    ],
)
def test_policies_that_differ_by_their_members_alone_have_different_fingerprints(
    policy: dict, other: dict, tmp_path: Path
):
    first, second = (make(tmp_path, policy=p, strategy="identity") for p in (policy, other))
    assert first.mechanism.policy.unprotected_pairs == second.mechanism.policy.unprotected_pairs
    assert first.fingerprint != second.fingerprint


def test_a_strategy_of_a_file(tmp_path: Path):
    (tmp_path / "strategy.csv").write_text("1,0,0,0\n1, 1,0,0\n1,1,-1,0\n", "utf-8")
    found = mechanism(tmp_path, strategy={"file": "strategy.csv"})
    assert found.strategy.entries.tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, -1, 0]]
    # The values 1 and 2 are 1 + 2 apart.
    assert alphas_of(found.rows).tolist() == pytest.approx([math.exp(-1 / 3)] * 3)


def test_scales_of_a_list_or_a_file(tmp_path: Path):
    listed = mechanism(tmp_path, scales=[1.0, 2, 4.0])
    assert alphas_of(listed.rows).tolist() == pytest.approx(np.exp([-1.0, -0.5, -0.25]))
    (tmp_path / "scales.csv").write_text("1.0\n2\n4e0\n", "utf-8")
    assert mechanism(tmp_path, scales={"file": "scales.csv"}) == listed
    assert len(listed.rows.thresholds) == 3
    assert make(tmp_path, scales=[1.0, 2, 4.0]).fingerprint != make(tmp_path).fingerprint


def test_the_best_of_the_built_in_strategies(tmp_path: Path):
    assert mechanism(tmp_path, strategy="best").strategy.name == "prefix"
    assert mechanism(tmp_path, strategy="best", workload="ranges").strategy.name == "prefix"
    # Two values: prefix, haar and hierarchical are equally good; ties go to the first.
    assert mechanism(tmp_path, strategy="best", domain={"size": 2}).strategy.name == "prefix"
    assert mechanism(tmp_path, strategy="best", domain=LABELS).strategy.name == "identity"
    assert mechanism(tmp_path, strategy="best", domain=PLANE).strategy.name == "identity"
    whole = {"blocks": 4}
    assert mechanism(tmp_path, strategy="best", policy=whole).strategy.name == "identity"
    # The chosen strategy, not the word, is what devices and servers must agree on.
    assert make(tmp_path, strategy="best").fingerprint == make(tmp_path).fingerprint


FILES = {
    "empty.csv": "",
    "short.csv": "1,0,0,0\n1,0\n",
    "text.csv": "1,0,0,x\n",
    "fraction.csv": "1,0,0,0.5\n",
    "huge.csv": "1,0,0,99999999\n",
    "larger.csv": "1,0,0,9999999\n",
    "singular.csv": "1,0,0,0\n0,1,0,0\n",
    "wide.csv": "1,2\n",
    "word.csv": "one\n",
    "negative.csv": "-1\n2\n3\n",
    "narrow.csv": "0,1\n",
}
IMPOSSIBLE: dict[str, tuple[dict[str, Any], str, str]] = {
    "no strategy": ({"strategy": None}, "strategy", "one of prefix, haar, "),
    "unknown strategy": (
        {"strategy": "fourier"},
        "strategy",
        "one of prefix, haar, hierarchical, identity, best, or { file",
    ),
    "strategy number": ({"strategy": 3}, "strategy", "got 3"),
    "prefix of labels": (
        {"domain": LABELS},
        "strategy",
        "identity, best or a file, as the others need an ordered domain of one dimension",
    ),
    "haar of a plane": ({"domain": PLANE, "strategy": "haar"}, "strategy", "one dimension"),
    "unknown workload": (
        {"workload": "all"},
        "workload",
        "one of values, prefixes, ranges, got 'all'",
    ),
    "ranges of labels": (
        {"workload": "ranges", "domain": LABELS, "strategy": "best"},
        "workload",
        '"values", as',
    ),
    "no epsilon": ({"epsilon": None}, "epsilon", "got none"),
    "negative epsilon": ({"epsilon": -1}, "epsilon", "above 0, got -1"),
    "epsilon 0 of labels": (
        {"epsilon": 0, "domain": LABELS, "strategy": "identity"},
        "epsilon",
        "above 0, got 0",
    ),
    "tiny epsilon": ({"epsilon": 1e-12}, "policy", "larger budgets"),
    "all may be known": (
        {"policy": {"blocks": [[0], [1], [2], [3]]}},
        "policy",
        "a budget between values that the strategy tells apart",
    ),
    "scales of the best": ({"strategy": "best", "scales": [1.0]}, "strategy", "with scales"),
    "scale text": ({"scales": [1.0, "2", 1.0]}, "scales[1]", "a finite number of at least 0"),
    "scale negative": ({"scales": [1.0, -2.0, 1.0]}, "scales[1]", "got -2.0"),
    "scale NaN": ({"scales": [1.0, math.nan, 1.0]}, "scales[1]", "got nan"),
    "scales number": ({"scales": 1.0}, "scales", "a list of numbers, or"),
    "scales too few": ({"scales": [1.0]}, "scales", "3 numbers, one a row, got 1"),
    "scales too small": ({"scales": [1.0, 0.9, 1.0]}, "scales", "values 1 and 2 lose 1.1111"),
    "blocks of the domain": ({"domain": {"size": 4, "blocks": 2}}, "domain.blocks", "no blocks"),
    "sensitive": ({"sensitive": [1]}, "sensitive", "no such key with matrix"),
    "large domain": ({"domain": {"size": 2049}}, "domain", "at most 2048 values, got 2049"),
    "best of many": (
        {"domain": {"size": 513}, "strategy": "best"},
        "strategy",
        "with more than 512 values",
    ),
    "many pairs": (
        {"domain": {"size": 1001}, "policy": {"metric": "l2"}},
        "policy",
        "at most 1000 values",
    ),
    "no file": ({"strategy": {"file": "none.csv"}}, "strategy.file", "a readable file"),
    "other key": ({"strategy": {"path": "x"}}, "strategy.path", "one of the keys file"),
    "empty file": ({"strategy": {"file": "empty.csv"}}, "strategy.file", "at least one row"),
    "short line": ({"strategy": {"file": "short.csv"}}, "strategy.file line 2", "4 integers"),
    "text": ({"strategy": {"file": "text.csv"}}, "strategy.file line 1 column 4", "an integer"),
    "fraction": ({"strategy": {"file": "fraction.csv"}}, "strategy.file line 1 column 4", "an int"),
    "huge": ({"strategy": {"file": "huge.csv"}}, "strategy.file line 1 column 4", "at most 10485"),
    "larger": ({"strategy": {"file": "larger.csv"}}, "strategy.file line 1 column 4", "at most 1"),
    "wide scales": ({"scales": {"file": "wide.csv"}}, "scales.file line 1", "one finite number"),
    "word scales": ({"scales": {"file": "word.csv"}}, "scales.file line 1", "one finite number"),
    "bad scales": ({"scales": {"file": "negative.csv"}}, "scales.file line 1", "at least 0"),
    "scales nowhere": ({"scales": {"file": "none.csv"}}, "scales.file", "a readable file"),
}


@pytest.mark.parametrize(("changes", "key", "expected"), IMPOSSIBLE.values(), ids=IMPOSSIBLE.keys())
def test_an_impossible_key_is_named(
    tmp_path: Path, changes: dict[str, Any], key: str, expected: str
):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, "utf-8")
    with pytest.raises(SpecError) as caught:
        make(tmp_path, **changes)
    assert caught.value.path == f"collection.ages.{key}"
    assert expected in caught.value.expected
