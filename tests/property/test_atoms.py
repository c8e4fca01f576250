"""Only unions of atoms are answered, and every interface says so of anything else."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ldpstream as ldp
from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.config.query.capabilities import read_options
from ldpstream.agents.web.description import _configured, _domain
from ldpstream.mechanisms.base.errors import QueryError
from tests.property.configs import refusal
from tests.property.documents import answer, totals
from tests.seeded import SeededEntropy
from tests.stream.cli import configured, invoke

TOML = """
[collection.hours]
mechanism = "subset-selection"
epsilon = 1.0
domain = { size = 24 }
workload = "published"
minimum = 1
publish = { ranges = { night = [0, 7], day = [4, 15], late = [12, 23] } }
"""
ATOMS = "0..3; 4..7; 8..11; 12..15 and 1 more"
ONLY = f'only unions of {ATOMS}, as workload = "published" merges values, got '


def hours(**keys: Any) -> CollectionConfig:
    publish = {"ranges": {"night": [0, 7], "day": [4, 15], "late": [12, 23]}}
    table = {"mechanism": "subset-selection", "epsilon": 1.0, "domain": {"size": 24}}
    shared = {"workload": "published", "publish": publish, "minimum": 1}
    return ldp.define_collection("hours", **(table | shared | keys))


@pytest.mark.parametrize(
    ("word", "text", "expected"),
    [
        ("range", "0..2", f"{ONLY}a part of 0..3"),
        ("range", "5..23", f"{ONLY}a part of 4..7"),
        ("linear", ",".join(map(str, range(24))), f"{ONLY}different weights in 0..3"),
        ("quantile", "0.5", ONLY.removesuffix(", got ")),
    ],
)
def test_what_divides_an_atom_is_refused(word: str, text: str, expected: str):
    config = hours()
    with pytest.raises(QueryError) as caught:
        read_options(config.options, config.spec, {word: [text]})
    assert (caught.value.name, caught.value.expected) == (word, expected)


def test_other_unions_are_answered_like_published_ones():
    config = hours()
    weights = [2.0] * 8 + [0.5] * 16
    options = read_options(
        config.options,
        config.spec,
        {"range": ["0..3", "8..15", "night"], "linear": [",".join(map(str, weights))]},
    )
    found = [one.values(config.spec.domain.shape).tolist() for one in options.ranges]
    assert found == [[0], [2, 3], [0, 1]]
    (linear,) = options.linear
    assert linear.weights.tolist() == [2.0, 2.0, 0.5, 0.5, 0.5]


def test_documents_list_atoms_by_name():
    config = hours()
    document = answer(config, totals(config, 4_000), top=None, ranges=config.options.ranges)
    names = ["0..3", "4..7", "8..11", "12..15", "16..23"]
    assert [entry["value"] for entry in document["distribution"]] == names
    shares = [entry["share"] for entry in document["distribution"]]
    night, day, late = (entry["share"] for entry in document["ranges"])
    assert night == pytest.approx(sum(shares[:2]))
    assert day == pytest.approx(sum(shares[1:4]))
    assert late == pytest.approx(sum(shares[3:]))
    assert any("into 5 sets" in sentence for sentence in config.privacy.protected)


def test_python_takes_values_and_refuses_parts_of_atoms():
    config = hours()
    values = np.random.default_rng(5).integers(0, 24, 60_000)
    reports = ldp.privatize(config, values, entropy=SeededEntropy(5))
    for given in (values.astype(float), values.tolist()):
        assert len(ldp.privatize(config, given[:9])) == 9
    clamped = ldp.privatize(config, [-1, 24], clamp=True)
    assert clamped.clamped == 2
    document = ldp.estimate(reports)
    for entry, first, last in zip(document.ranges, (0, 4, 12), (7, 15, 23), strict=True):
        true = float(np.mean((values >= first) & (values <= last)))
        assert abs(entry.share - true) < 6 * entry.se  # fails with probability below 1e-8
    with pytest.raises(ValueError, match="only unions of"):
        ldp.estimate(reports, ranges=["0..2"])
    with pytest.raises(ValueError, match="only unions of"):
        ldp.estimate(reports, quantiles=[0.5])


def test_configurations_are_refused_with_the_key():
    table = {"mechanism": "subset-selection", "epsilon": 1.0, "domain": {"size": 24}}
    table |= {"workload": "published", "publish": {"ranges": {"a": [0, 7]}, "quantiles": [0.5]}}
    said = refusal({"collection": {"checkins": table}})
    assert said.startswith(
        "collection.checkins.publish.quantiles: expected only unions of 0..7; 8..23"
    )
    table["publish"] = {"ranges": {"a": [0, 70]}}
    said = refusal({"collection": {"checkins": table}})
    assert said.startswith("collection.checkins.publish.ranges.a: expected whole numbers in 0..23")


def test_commands_estimate_and_plan_unions(tmp_path: Path):
    file = configured(tmp_path, TOML)
    reports = tmp_path / "reports.jsonl"
    lines = "\n".join(map(str, np.random.default_rng(2).integers(0, 24, 500)))
    reports.write_text(invoke("privatize", "-c", file, "hours", stdin=lines).stdout)
    shown = invoke("estimate", "-c", file, "hours", str(reports), "--top", "all")
    assert shown.exit_code == 0, shown.output
    assert "16..23" in shown.stdout
    refused = invoke("estimate", "-c", file, "hours", str(reports), "--range", "0..2")
    assert refused.exit_code == 2
    assert "only unions of 0..3" in " ".join(refused.output.split())
    planned = invoke("plan", "-c", file, "hours", "--respondents", "1000", "--search", "0")
    assert planned.exit_code == 0, planned.output
    assert "3 published ranges" in " ".join(planned.stdout.split())
    for command in ("certify", "spec"):
        assert invoke(command, "-c", file, "hours").exit_code == 0


def test_workers_describe_atoms_as_labels():
    shape = _domain(hours().spec)
    assert (shape.kind, shape.shape, shape.ordered) == ("values", [5], False)


def test_workers_name_published_sets_of_labels():
    modes = {"domain": {"values": ["bus", "tram", "car"]}, "mechanism": "randomized-response"}
    config = ldp.define_collection(
        "modes", **modes, epsilon=1.0, publish={"sets": {"public": ["bus"]}}
    )
    assert _configured(config.options.ranges) == ["public"]
