"""Specs: what devices and servers agree on, the frames that they make, and what they refuse."""

import itertools
import math
import time
from pathlib import Path

import numpy as np
import pytest

from ldpstream.mechanisms import SpecError, ValueOutsideDomainError, decode_frame, load_spec
from tests.exact.specs import BASE, BINARY, BITS, GEOMETRIC, HIGH_LOW, make
from tests.seeded import SeededEntropy


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


def test_a_frame_holds_private_reports_and_cut_times(tmp_path: Path):
    spec = make(tmp_path, BASE)
    times_ms = [-1, 1999, 2000, 1000]
    data = spec.frame(["a", "b", "c", "a"], times_ms=times_ms, entropy=SeededEntropy(1))
    frame = decode_frame(
        data, fingerprint=spec.fingerprint, report_bytes=spec.mechanism.report_bytes
    )
    assert frame.times_ms.tolist() == [-1000, 1000, 2000]
    assert frame.counts.tolist() == [1, 2, 1]
    reports = spec.privatize(["a", "b", "c", "a"], entropy=SeededEntropy(1))
    decoded, valid = spec.mechanism.decode(frame.payload)
    assert valid.all()
    assert decoded.tolist() == [reports[0], *sorted(reports[[1, 3]].tolist()), reports[2]]


def test_a_frame_does_not_disclose_the_order_of_its_reports(tmp_path: Path):
    spec = make(tmp_path, BASE)
    reports, times_ms = np.array([3, 0, 2, 1, 0]), np.array([0, 999, 1000, 500, 1999])
    frames = {
        spec.frame_reports(reports[list(order)], times_ms=times_ms[list(order)])
        for order in itertools.permutations(range(5))
    }
    (data,) = frames
    frame = decode_frame(data, fingerprint=spec.fingerprint, report_bytes=1)
    assert (frame.times_ms.tolist(), frame.counts.tolist()) == ([0, 1000], [3, 2])
    assert frame.payload[:, 0].tolist() == [0, 1, 3, 0, 2]


def test_a_frame_is_of_now_by_default(tmp_path: Path):
    spec = make(tmp_path, BASE)
    before = time.time_ns() // 1_000_000
    data = spec.frame(["a"])
    after = time.time_ns() // 1_000_000
    frame = decode_frame(data, fingerprint=spec.fingerprint, report_bytes=1)
    (moment,) = frame.times_ms.tolist()
    assert moment % 1000 == 0
    assert before - 1000 < moment <= after


def test_impossible_frames_are_refused(tmp_path: Path):
    spec = make(tmp_path, BASE)
    with pytest.raises(ValueOutsideDomainError, match="position 1: expected one of the 3 labels"):
        spec.frame(["a", "secret"])
    with pytest.raises(ValueOutsideDomainError, match="position 0") as caught:
        make(tmp_path, BASE, domain={"grid": [3, 3]}).frame([7])
    assert caught.value.__cause__ is None, "a cause could name the value"
    with pytest.raises(ValueError, match="at least one report"):
        spec.frame([])
    wrong_shapes = ([1, 2], 5, np.zeros((1, 1), dtype=np.int64))
    for times_ms in (*wrong_shapes, [1.5], [math.nan], ["noon"], [2**63], [2**70], [-(2**63)]):
        with pytest.raises(ValueError, match="one time"):
            spec.frame(["a"], times_ms=times_ms)


PATH = "collection.checkins"
HIDDEN = {**HIGH_LOW, "mechanism": "groups"}
IMPOSSIBLE = {
    "mechanism": (
        BASE,
        {"mechanism": "laplace"},
        "mechanism",
        "binary, block-hadamard, groups, high-low",
    ),
    "mechanism type": (BASE, {"mechanism": ["binary"]}, "mechanism", "one of"),
    "epsilon 0": (BASE, {"epsilon": 0}, "epsilon", "a finite number above 0, got 0"),
    "epsilon NaN": (BASE, {"epsilon": math.nan}, "epsilon", "a finite number above 0, got nan"),
    "epsilon true": (BASE, {"epsilon": True}, "epsilon", "a finite number above 0, got true"),
    "epsilon list": (BASE, {"epsilon": [1.0, 2.0]}, "epsilon", "got a list of 2"),
    "budgets one": (BINARY, {"epsilon": 1.0}, "epsilon", "a list of two numbers"),
    "budgets three": (BINARY, {"epsilon": [1, 2, 3]}, "epsilon", "a list of two numbers"),
    "budget 0": (BINARY, {"epsilon": [1.0, 0]}, "epsilon[1]", "a number above 0, got 0"),
    "budget NaN": (BINARY, {"epsilon": [math.nan, 1]}, "epsilon[0]", "a number above 0, got nan"),
    "budgets infinite": (BINARY, {"epsilon": [math.inf] * 2}, "epsilon", "at most one infinite"),
    "binary of three": (BINARY, {"domain": {"size": 3}}, "domain", "2 values with binary, got 3"),
    "binary blocks": (BINARY, {"domain": {"size": 2, "blocks": 1}}, "domain.blocks", "no blocks"),
    "binary sensitive": (BINARY, {"sensitive": ["no"]}, "sensitive", "no such key with binary"),
    "hadamard sensitive": (BASE, {"sensitive": ["a"]}, "sensitive", "no such key"),
    "all alone": (
        BASE,
        {"domain": {"values": ["a", "b"], "blocks": 1}},
        "domain.blocks",
        "a block of two or more values",
    ),
    "high-low blocks": (HIGH_LOW, {"domain": {"size": 10, "blocks": 5}}, "domain.blocks", "no"),
    "groups share": (HIDDEN, {"share": 1.5}, "share", "the share of users with a sensitive value"),
    "groups blocks": (HIDDEN, {"domain": {"size": 10, "blocks": 5}}, "domain.blocks", "no blocks"),
    "share elsewhere": (HIGH_LOW, {"share": 0.2}, "share", "no such key with high-low"),
    "sensitive none": (HIGH_LOW, {"sensitive": []}, "sensitive", "at least one value to protect"),
    "sensitive text": (HIGH_LOW, {"sensitive": "0"}, "sensitive", "a list"),
    "sensitive twice": (HIGH_LOW, {"sensitive": [1, 2, 1]}, "sensitive", "each value once"),
    "sensitive outside": (
        HIGH_LOW,
        {"sensitive": [1, 10]},
        "sensitive[1]",
        "an integer in 0..9, got 10",
    ),
    "sensitive misspelt": (
        HIGH_LOW,
        {"sensitive": ["hivv"], "domain": {"values": ["none", "flu", "hiv"]}},
        "sensitive[0]",
        "one of the 3 labels of the domain, such as 'none', got 'hivv' (did you mean hiv?)",
    ),
    "interval huge": (
        BASE,
        {"domain": {"interval": [0, 10**400], "bins": 4}},
        "domain.interval",
        "double precision",
    ),
    "geometric of labels": (
        GEOMETRIC,
        {"domain": {"values": ["a", "b"]}},
        "domain",
        "an ordered domain with l1-geometric (size, sizes, grid or interval), got labels",
    ),
    "bits of labels": (
        BITS,
        {"domain": {"values": ["a", "b"]}},
        "domain",
        "an ordered domain with l1-bits (size, sizes, grid or interval), got labels",
    ),
    "bits blocks": (BITS, {"domain": {"size": 10, "blocks": 5}}, "domain.blocks", "no blocks"),
    "geometric blocks": (
        GEOMETRIC,
        {"domain": {"size": 10, "blocks": 5}},
        "domain.blocks",
        "no blocks with l1-geometric",
    ),
    "topic": (BASE, {"topic": "check ins"}, "topic", "a topic of at most"),
    "topic empty": (BASE, {"topic": ""}, "topic", "a topic"),
    "topic number": (BASE, {"topic": 3}, "topic", "a topic"),
    "precision 0": (BASE, {"precision": "0s"}, "precision", "a duration above 0"),
    "precision number": (BASE, {"precision": 1000}, "precision", "a duration"),
    "precision huge": (BASE, {"precision": "999999999999d"}, "precision", "at most 36500d"),
    "precision unit": (BASE, {"precision": "1 fortnight"}, "precision", "a duration"),
}


@pytest.mark.parametrize(
    ("mapping", "changes", "key", "expected"), IMPOSSIBLE.values(), ids=IMPOSSIBLE.keys()
)
def test_an_impossible_key_is_named(
    tmp_path: Path, mapping: dict, changes: dict, key: str, expected: str
):
    with pytest.raises(SpecError) as caught:
        make(tmp_path, mapping, **changes)
    assert caught.value.path == f"{PATH}.{key}"
    assert expected in caught.value.expected
    assert str(caught.value) == f"{PATH}.{key}: expected {caught.value.expected}"


@pytest.mark.parametrize("name", ["", "two words", "a/b", "x" * 300])
def test_a_name_that_makes_no_topic_is_refused(tmp_path: Path, name: str):
    with pytest.raises(SpecError, match="a name of letters"):
        make(tmp_path, BASE, name=name)


@pytest.mark.parametrize(
    ("content", "path", "expected"),
    [
        (None, "file", "a readable file"),
        (b"[collection", "file", "TOML"),
        (b"\xff", "file", "TOML"),
        (b"", "collection.places", "this table"),
        (b"collection = 3", "collection.places", "this table"),
        (b"[collection.other]", "collection.places", "this table"),
        (b"[collection]\nplaces = 1", "collection.places", "this table"),
        (b"[collection.places]", "collection.places.domain", "a table with one of"),
    ],
)
def test_a_file_that_has_no_such_collection_is_refused(
    tmp_path: Path, content: bytes | None, path: str, expected: str
):
    file = tmp_path / "ldpstream.toml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SpecError, match=expected) as caught:
        load_spec(file, "places")
    assert caught.value.path == (str(file) if path == "file" else path)
