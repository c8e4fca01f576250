"""Commands that show what the papers' theorems say of a collection."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from ldpstream.agents.cli.python.plans import plan
from ldpstream.agents.cli.python.reports import define_collection
from tests.stream.cli import configured, invoke


def test_certify_gives_the_errors_of_tests_between_two_values(tmp_path: Path):
    """[CA] Theorem 1: a sensitive value against another, and the best tests of high-low."""
    file = configured(tmp_path)
    ran = invoke("certify", "-c", file, "modes", "--pair", "bus", '"walk, slowly"')
    assert ran.exit_code == 0, ran.output
    region = json.loads(ran.stdout)["collections"][0]["region"]
    assert (region["value"], region["other"]) == ("bus", "walk, slowly")
    assert region["budgets"] == [1.0, "inf"]
    # a = 1 and b infinite: no test misses fewer than e^-1 of its alarms without ever being wrong.
    assert region["corner"] == pytest.approx([math.exp(-1), 0.0])
    assert region["inside"] is True
    for alarm, missed in region["boundary"]:
        assert math.e * alarm + missed >= 1.0 - 1e-12


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["modes", "--pair", "bus", "boat"], "--pair: expected one of the 3 labels"),
        (["modes", "--pair", "bus", "bus"], "--pair: expected two different values, got bus twice"),
        (["--pair", "bus", "train"], "--pair: expected NAME"),
    ],
)
def test_impossible_pairs_are_refused(tmp_path: Path, options: list[str], message: str):
    ran = invoke("certify", "-c", configured(tmp_path), *options)
    assert ran.exit_code != 0
    assert message in ran.output


@pytest.mark.parametrize(
    ("keys", "order"),
    [
        ({"domain": {"size": 8}, "epsilon": 0.5}, 8 / 0.5),
        ({"domain": {"size": 8, "blocks": 4}, "epsilon": 1.0}, math.sqrt(2 * 16)),
        (
            {"domain": {"size": 8}, "epsilon": 0.5, "sensitive": [0, 1], "mechanism": "high-low"},
            math.sqrt(4 / 0.25 + 8 / 0.5),
        ),
        ({"domain": {"size": 8}, "epsilon": 2.0}, None),
    ],
)
def test_plans_say_the_least_order_of_the_error(keys: dict[str, object], order: float | None):
    """[CA] Theorems 3 and 4: the errors measured are of that order."""
    collection = define_collection("c", **{"mechanism": "block-hadamard", **keys})
    found = plan(collection, respondents=10_000, search_seconds=0.0)
    if order is None:
        assert found.order is None
        return
    assert found.order == pytest.approx(order / 100)
    assert 0.1 < found.mechanisms[0].total_variation / found.order < 10.0


HOURS = {"night": [0, 7], "day": [4, 15], "late": [12, 23]}


@pytest.mark.parametrize(
    ("epsilon", "keys", "atoms", "variance"),
    [
        (1.0, {}, 5, 3.45479),
        (3.0, {}, 5, 0.14455),
        (1.0, {"publish": {"ranges": HOURS, "linear": {"hour": list(range(24))}}}, None, None),
        (1.0, {"publish": {"ranges": HOURS, "quantiles": [0.5]}}, None, None),
        (1.0, {"workload": "published"}, None, None),
        (1.0, {"prior": [0.0625] * 8 + [0.03125] * 16}, None, None),
        (1.0, {"publish": {"ranges": {"young": [0, 1]}}, "domain": {"size": 4}}, 2, 0.920674),
    ],
)
def test_plans_propose_reports_on_atoms(
    epsilon: float, keys: dict[str, Any], atoms: int | None, variance: float | None
):
    """Where fixed ranges are all that is published, and that has less error than the best."""
    collection = define_collection(
        "visits",
        **{
            "mechanism": "randomized-response",
            "epsilon": epsilon,
            "domain": {"size": 24},
            "publish": {"ranges": HOURS},
            **keys,
        },
    )
    found = plan(collection, respondents=10_000, search_seconds=0.0)
    assert ("nothing else is answered" in found.verdict) is (atoms is not None)
    if atoms is None:
        assert found.atoms is None
        return
    assert found.atoms is not None
    assert found.atoms.atoms == atoms
    assert found.atoms.error == pytest.approx(math.sqrt(variance / 10_000), rel=1e-5)
    assert found.atoms.error < found.mechanisms[0].error
