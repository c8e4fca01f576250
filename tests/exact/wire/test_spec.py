"""Specs: what devices and servers agree on."""

from pathlib import Path

import numpy as np
import pytest

from ldpstream.mechanisms import load_spec
from tests.exact.specs import BASE, BINARY, BITS, GEOMETRIC, HIGH_LOW, make


def test_defaults_and_keys_that_others_read(tmp_path: Path):
    spec = make(tmp_path, BASE, window={"size": "1h"}, nonsense=3)
    assert (spec.topic, spec.precision_ms) == ("checkins.reports", 1000)
    assert make(tmp_path, BASE, topic="t", precision="5m").topic == "t"
    assert make(tmp_path, BASE, precision="250ms").precision_ms == 250
    assert make(tmp_path, BASE, epsilon=1) == make(tmp_path, BASE)


@pytest.mark.parametrize("mapping", [BASE, BINARY, HIGH_LOW, GEOMETRIC])
def test_the_fingerprint_is_that_of_everything_but_the_topic(tmp_path: Path, mapping: dict):
    spec = make(tmp_path, mapping)
    assert len(spec.fingerprint) == 8
    assert make(tmp_path, mapping, topic="elsewhere").fingerprint == spec.fingerprint
    others = [
        make(tmp_path, mapping, name="other"),
        make(tmp_path, mapping, precision="2s"),
        make(tmp_path, mapping, epsilon=[1.0, 2.5] if mapping is BINARY else 1.5),
        make(tmp_path, mapping, domain={"values": ["b", "a"]}, sensitive=["a"])
        if mapping is HIGH_LOW
        else make(tmp_path, mapping, domain={"sizes": [2, 5]})
        if mapping is GEOMETRIC
        else make(tmp_path, mapping, domain={"values": ["x", "y"]}),
    ]
    fingerprints = {spec.fingerprint, *(other.fingerprint for other in others)}
    assert len(fingerprints) == 1 + len(others)


def test_the_fingerprint_holds_blocks_sensitive_values_and_the_file_content(tmp_path: Path):
    (tmp_path / "places.csv").write_text("a\nb\nc\n", "utf-8")
    plain = make(tmp_path, BASE)
    assert make(tmp_path, BASE, domain={"file": "places.csv"}).fingerprint == plain.fingerprint
    blocked = make(tmp_path, BASE, domain={"values": ["a", "b", "c"], "blocks": 2})
    assert blocked.fingerprint != plain.fingerprint
    hidden = [make(tmp_path, HIGH_LOW, sensitive=s).fingerprint for s in ([0, 9], [0, 8], [9])]
    assert len(set(hidden)) == 3
    assert make(tmp_path, HIGH_LOW, sensitive=[9, 0]).fingerprint == hidden[0]


ORDERED = {
    "size": ({"size": 10}, (10,)),
    "sizes": ({"sizes": [3, 1, 4]}, (3, 1, 4)),
    "grid": ({"grid": [5, 7]}, (5, 7)),
    "interval": ({"interval": [0.0, 1.0], "bins": 4}, (4,)),
    "intervals": ({"interval": [[0, 1], [-5, 5]], "bins": [4, 2]}, (4, 2)),
}


@pytest.mark.parametrize("mapping", [GEOMETRIC, BITS], ids=["geometric", "bits"])
@pytest.mark.parametrize(("domain", "shape"), ORDERED.values(), ids=ORDERED.keys())
def test_l1_mechanisms_take_every_ordered_domain(
    tmp_path: Path, mapping: dict, domain: dict, shape: tuple
):
    mechanism = make(tmp_path, mapping, domain=domain).mechanism
    assert mechanism.shape == shape
    assert mechanism.policy.describe()["shape"] == list(shape)


def test_bins_say_what_they_guarantee_for_real_numbers(tmp_path: Path):
    domain = {"interval": [[0.0, 100.0], [-1.0, 1.0]], "bins": [64, 7]}
    spec = make(tmp_path, GEOMETRIC, domain=domain)
    guarantee = spec.mechanism.certify().to_json()["policy"]["guarantee"]
    assert "epsilon/width * (|u - v| + width)" in guarantee
    assert f"bins of width 1.5625, {2 / 7:.10f}"[:-3] in guarantee
    plain = make(tmp_path, GEOMETRIC).mechanism.certify().to_json()["policy"]["guarantee"]
    assert plain == "epsilon for each index step between two values, added over the dimensions"
    # The claim itself: bins cut between two numbers are at most |u - v| / width + 1.
    rng = np.random.default_rng(1)
    points = rng.uniform([0, -1], [100, 1], (500, 2))
    points[::3] = np.stack([rng.choice(edges, 167) for edges in spec.domain.edges], axis=1)
    indices = spec.domain.index(points)
    bins = np.stack(np.divmod(indices, 7), axis=1)
    apart = np.abs(points - points[::-1]) / np.array(spec.mechanism.widths)
    assert (np.abs(bins - bins[::-1]) <= apart + 1).all()
    assert (np.abs(bins - bins[::-1]) > apart + 0.9).any()


def test_what_leaves_in_the_clear_is_listed(tmp_path: Path):
    phrases = make(tmp_path, BASE, precision="5m").disclosed()
    assert len(phrases) == 2
    assert "cut to 5m" in phrases[0]
    assert "taking part" in phrases[1]
    assert "when it sends" in phrases[1]
    blocked = make(tmp_path, BASE, domain={"values": ["a", "b", "c"], "blocks": 2})
    assert "one of 2" in blocked.disclosed()[0]
    assert "alone" in blocked.disclosed()[1]


def test_a_device_loads_its_collection_from_the_file(tmp_path: Path):
    (tmp_path / "places.csv").write_text("mill,east\ndock,east\nquay,west\n", "utf-8")
    file = tmp_path / "ldpstream.toml"
    file.write_text(
        '[collection.places]\nmechanism = "block-hadamard"\nepsilon = 1.0\n'
        'domain = { file = "places.csv" }\n'
        '[collection.answers]\nmechanism = "binary"\nepsilon = [inf, 1.0]\n'
        'domain = { values = ["no", "yes"] }\n',
        "utf-8",
    )
    spec = load_spec(file, "places")
    assert (spec.name, spec.domain.size) == ("places", 3)
    assert spec.frame(["quay"])
    assert load_spec(str(file), "answers").mechanism.policy.unprotected_pairs == 1
