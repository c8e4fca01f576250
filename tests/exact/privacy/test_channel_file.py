"""Channel files: what is written is what is loaded, and nothing else is."""

import copy
import errno
import json
import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from ldpstream.mechanisms import CollectionSpec, SpecError
from ldpstream.mechanisms.channels.designed import (
    DesignedChannel,
    channel_document,
    load_channel,
    read_channel,
    read_policy_document,
    save_channel,
    tabled,
)
from ldpstream.mechanisms.exact.dyadic import sign_threshold
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.optimal import Optimal
from ldpstream.mechanisms.policies.matrix import MatrixPolicy
from ldpstream.mechanisms.policies.metric import MetricPolicy
from ldpstream.mechanisms.policies.prior import PriorPolicy
from tests.exact.enumeration import Scripted

CHANNELS = Path(__file__).parents[2] / "vectors" / "channels"
NAMES = ["asymmetric.json", "classical.json", "graph.json", "line.json", "lip.json"]


def document(name: str) -> dict:
    return json.loads((CHANNELS / name).read_text("utf-8"))


def sealed(changed: dict, tmp_path: Path) -> Path:
    """A file that was changed by someone who could also write the new digest."""
    try:
        digest = read_channel({**changed, "sha256": "?"}).digest
    except SpecError as error:
        digest = error.expected.split(",")[0]
    path = tmp_path / "changed.json"
    path.write_text(json.dumps({**changed, "sha256": digest}), "utf-8")
    return path


def test_a_full_disk_leaves_the_file_that_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    file = tmp_path / "channel.json"
    save_channel(file, load_channel("line.json", CHANNELS))
    before = file.read_bytes()
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        save_channel(file, load_channel("graph.json", CHANNELS))
    assert file.read_bytes() == before
    assert [*tmp_path.iterdir()] == [file]


def spec_of(path: Path, size: int) -> CollectionSpec:
    mapping = {"mechanism": "optimal", "channel": path.name, "domain": {"size": size}}
    return CollectionSpec.from_mapping("ages", mapping, base=path.parent)


def moved(name: str, value: int, *, source: int, target: int, units: int) -> dict:
    """The document with some probability of one value moved from one report to another."""
    changed = copy.deepcopy(document(name))
    row = changed["weights"][value]
    row[source] = hex(int(row[source], 16) - units)
    row[target] = hex(int(row[target], 16) + units)
    return changed


@pytest.mark.parametrize("name", NAMES)
def test_a_file_comes_back_as_it_was(name: str, tmp_path: Path):
    channel = load_channel(name, CHANNELS)
    save_channel(tmp_path / "again.json", channel)
    again = load_channel("again.json", tmp_path)
    assert again == channel
    assert again.record == channel.record
    assert again.digest == channel.digest == document(name)["sha256"]
    assert channel_document(again) == document(name)


@pytest.mark.parametrize("name", NAMES)
def test_the_spec_of_a_collection_hashes_the_channel(name: str):
    size = load_channel(name, CHANNELS).policy.size
    spec = spec_of(CHANNELS / name, size)
    assert document(name)["sha256"] in spec.canonical.decode()
    with pytest.raises(SpecError, match=rf"channel: expected a channel of {size + 1} values"):
        spec_of(CHANNELS / name, size + 1)


def test_an_altered_file_is_refused():
    changed = moved("line.json", 2, source=0, target=1, units=1)
    with pytest.raises(SpecError, match=r"sha256: expected .*it was altered"):
        read_channel(changed)


@pytest.mark.parametrize("name", ["line.json", "classical.json", "graph.json", "asymmetric.json"])
def test_a_broken_policy_is_refused_naming_the_pair_and_the_report(name: str, tmp_path: Path):
    matrix = load_channel(name, CHANNELS).matrix
    value, output = np.unravel_index(matrix.argmax(), matrix.shape)
    units = WORD // 100
    source = int(np.argsort(matrix[value])[-2])
    path = sealed(moved(name, int(value), source=source, target=int(output), units=units), tmp_path)
    with pytest.raises(SpecError) as caught:
        spec_of(path, len(matrix))
    message = str(caught.value)
    assert message.startswith("collection.ages.channel: expected a channel that keeps its policy")
    assert f"{value} " in message
    assert f"at output {output}" in message or f"at output {source}" in message
    certificate = load_channel("changed.json", tmp_path).certify("optimal", [])
    assert not certificate.passed
    assert certificate.violation is not None


def test_a_broken_prior_bound_is_refused_naming_the_value_and_the_report(tmp_path: Path):
    matrix = load_channel("lip.json", CHANNELS).matrix
    value, output = np.unravel_index(matrix.argmax(), matrix.shape)
    source = int(np.argsort(matrix[value])[-2])
    changed = moved("lip.json", int(value), source=source, target=int(output), units=WORD // 50)
    with pytest.raises(SpecError, match=r"value \d+ at output \d+: loss .* above the budget 0.7"):
        spec_of(sealed(changed, tmp_path), len(matrix))


def test_large_channels_are_proved_too_when_they_are_loaded(tmp_path: Path):
    """A chain of 65 values and one of reports: beyond what matrices of budgets hold."""
    size, rare = 65, WORD // 512
    weights = [[rare] * size for _ in range(size)]
    for value, row in enumerate(weights):
        row[value] = WORD - rare * (size - 1)
    line, uniform = tabled(MetricPolicy(1.0, (size,))), (1 / size,) * size
    channel = DesignedChannel(line, tuple(map(tuple, weights)), uniform)
    save_channel(tmp_path / "broken.json", channel)
    with pytest.raises(SpecError, match="channel: expected a channel that keeps its policy"):
        spec_of(tmp_path / "broken.json", size)
    prior = PriorPolicy(1.0, (Fraction(1, size),) * size)
    save_channel(tmp_path / "prior.json", DesignedChannel(prior, channel.weights, uniform))
    with pytest.raises(SpecError, match="channel: expected a channel that keeps its policy"):
        spec_of(tmp_path / "prior.json", size)
    assert load_channel("prior.json", tmp_path).certify("optimal", []).proof == "enumeration"


def test_a_prior_that_makes_a_report_impossible_is_refused():
    mangat = ((1, WORD - 1, 0), (0, WORD - 1, 1))
    unprotected = MatrixPolicy.of([[0, "inf"], ["inf", 0]])
    with pytest.raises(SpecError, match="prior: expected shares large enough"):
        DesignedChannel(unprotected, mangat, (5e-324, 1.0))


def test_one_unit_too_much_is_found():
    """The proof is exact: a single unit of 2^-64 beyond a tight budget breaks it."""
    channel = DesignedChannel(MatrixPolicy.of([[0, 1.0], [1.0, 0]]), _warner(0), (0.5, 0.5))
    assert channel.certify("optimal", []).passed
    beyond = DesignedChannel(channel.policy, _warner(1), (0.5, 0.5))
    assert not beyond.certify("optimal", []).passed


def _warner(extra: int) -> tuple[tuple[int, ...], ...]:
    threshold = sign_threshold(Fraction(1)) + extra
    return ((threshold, WORD - threshold), (WORD - threshold, threshold))


def _without(key: str) -> dict:
    return {name: entry for name, entry in document("line.json").items() if name != key}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ([], "file: expected a table"),
        ({**document("line.json"), "more": 1}, "file.more: expected one of the keys"),
        ({**document("line.json"), "version": 2}, "version: expected 1, got 2"),
        (_without("policy"), "policy: expected a table of the kind"),
        (_without("prior"), "prior: expected a list of numbers"),
        (_without("weights"), "weights: expected a list of rows"),
        (
            {**document("line.json"), "weights": [["x"]] * 6},
            r"weights\[0\]: expected a list of hex",
        ),
        ({**document("line.json"), "prior": [0.5] * 6}, "prior: expected 6 numbers above 0"),
        ({**document("line.json"), "prior": [0.0, 0.2, 0.2, 0.2, 0.2, 0.2]}, "prior: expected 6"),
        ({**document("line.json"), "prior": [10**400] * 6}, "prior: expected a list of numbers in"),
        ({**document("line.json"), "weights": [["0x1"]] * 5}, "weights: expected 6 rows"),
        (
            {**document("line.json"), "weights": [["-1"]] * 6},
            r"weights\[0\]: expected whole numbers",
        ),
        (
            {**document("line.json"), "weights": [[hex(WORD - 1)]] * 6},
            r"weights\[0\]: expected a sum of 2\^64",
        ),
        (
            {**document("line.json"), "weights": [[hex(WORD), "0x0"]] * 6},
            "weights: expected reports that some value can make",
        ),
        (
            {**document("line.json"), "weights": [[hex(WORD // 2)] * 2] * 6},
            "weights: expected an invertible channel",
        ),
    ],
)
def test_documents_that_are_not_channels_are_refused(changed: object, message: str):
    with pytest.raises(SpecError, match=message):
        read_channel(changed)


@pytest.mark.parametrize(
    "given", [None, 3, "", "missing.json", "text.json", "deep.json", "number.json"]
)
def test_unreadable_files_are_refused(given: object, tmp_path: Path):
    (tmp_path / "text.json").write_text("no JSON", "utf-8")
    (tmp_path / "deep.json").write_text("[" * 100_000, "utf-8")
    (tmp_path / "number.json").write_text("1" * 10_000, "utf-8")
    with pytest.raises(SpecError, match=r"^channel: expected"):
        load_channel(given, tmp_path)


@pytest.mark.parametrize("key", ["epsilon", "policy", "strategy"])
def test_a_collection_has_no_other_keys(key: str):
    mapping = {"mechanism": "optimal", "channel": "line.json", "domain": {"size": 6}, key: 1.0}
    with pytest.raises(SpecError, match=f"collection.ages.{key}: expected no such key"):
        CollectionSpec.from_mapping("ages", mapping, base=CHANNELS)


def test_policies_come_back_exactly():
    policies = [
        MatrixPolicy.of([[0, 0.1, "inf"], [2, 0, 0.5], [1, 1, 0]]),
        tabled(MetricPolicy(0.3, (4, 3))),
        PriorPolicy(0.5, (Fraction(1, 3), Fraction(2, 3))),
    ]
    for policy in policies:
        again = read_policy_document(json.loads(json.dumps(policy.document())))
        assert again == policy
    line, metric = tabled(MetricPolicy(0.3, (5,))), MetricPolicy(0.3, (5,))
    assert all(line.entry(x, z) == metric.entry(x, z) for x in range(5) for z in range(5))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kind": "other"}, "policy: expected a table"),
        ({"kind": "graph", "size": 2.5, "edges": []}, "policy.size"),
        ({"kind": "graph", "size": 3, "edges": [[0, 1]]}, "policy.edges"),
        ({"kind": "graph", "size": 3, "edges": [[0, 1, "inf"]]}, "policy.edges"),
        ({"kind": "graph", "size": 300, "edges": [[0, 1, "1"]]}, "policy: expected at most 256"),
        ({"kind": "matrix", "budgets": [["0", 1.5], ["1", "0"]]}, "policy.budgets: .*fractions"),
        ({"kind": "matrix", "budgets": [["0"] * 65] * 65}, "policy: expected at most 64"),
        ({"kind": "matrix", "budgets": [["0", "1e9999999"], ["1", "0"]]}, "policy.budgets"),
        ({"kind": "matrix", "budgets": [["0", "-1/2"], ["1", "0"]]}, "policy.budgets"),
        ({"kind": "matrix", "budgets": [["0", "1/0"], ["1", "0"]]}, "policy.budgets"),
        ({"kind": "lip", "epsilon": -1, "prior": ["1/2", "1/2"]}, "policy.epsilon"),
        ({"kind": "lip", "epsilon": 1, "prior": ["1/2", "1/3"]}, "prior: expected shares"),
    ],
)
def test_documents_that_are_not_policies_are_refused(given: dict, message: str):
    with pytest.raises(SpecError, match=message):
        read_policy_document(given)


MANGAT = Optimal(
    DesignedChannel(
        MatrixPolicy.of([[0, 1.0], ["inf", 0]]),
        ((WORD // 2, 0, WORD // 2), (WORD - 2, 1, 1)),
        (0.5, 0.5),
    )
)


def drawn(mechanism: Optimal, values: list[int], words: list[int]) -> list[int]:
    """Return the reports of these values, which take exactly these words."""
    entropy = Scripted(words)
    reports: list[int] = mechanism.privatize(np.array(values), entropy=entropy).tolist()
    assert not entropy.left
    return reports


@pytest.mark.parametrize(
    "mechanism", [Optimal(load_channel("line.json", CHANNELS)), MANGAT], ids=["line", "zeros"]
)
def test_every_interval_of_words_begins_and_ends_where_it_should(mechanism: Optimal):
    for value, row in enumerate(mechanism.design.weights):
        start = 0
        for output, weight in enumerate(row):
            if weight:
                words = [start, start + weight - 1]
                assert drawn(mechanism, [value, value], words) == [output, output]
            start += weight
        assert start == WORD


def test_each_value_has_its_own_row():
    mechanism = Optimal(load_channel("graph.json", CHANNELS))
    values = [3, 0, 3, 5, 1]
    words = [1 << 40, 1 << 63, WORD - 1, 12345, 1 << 62]
    alone = [
        report
        for value, word in zip(values, words, strict=True)
        for report in drawn(mechanism, [value], [word])
    ]
    assert drawn(mechanism, values, words) == alone


def test_no_other_linear_decoder_has_less_variance_under_the_design_prior():
    mechanism = Optimal(load_channel("asymmetric.json", CHANNELS))
    channel, prior = mechanism.design.matrix, np.array(mechanism.design.prior)
    decoder = mechanism.decoder
    rng = np.random.default_rng(1)
    null = np.linalg.svd(channel)[2][len(channel) :]
    for value in range(mechanism.size):
        weights = np.eye(mechanism.size)[value]
        best = decoder.decode(weights)
        moment = prior @ (channel @ best**2)
        for _ in range(20):
            other = best + 0.1 * rng.normal(size=len(null)) @ null
            assert np.allclose(channel @ other, weights)
            assert prior @ (channel @ other**2) > moment


def test_the_channel_is_the_table():
    rows = MANGAT.channel().rows
    assert rows[0] == {0: Fraction(1, 2), 2: Fraction(1, 2)}
    assert rows[1] == {0: Fraction(WORD - 2, WORD), 1: Fraction(1, WORD), 2: Fraction(1, WORD)}
