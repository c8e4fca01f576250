"""The vectors of docs/wire.md: bytes that every implementation must write and read.

They are permanent. A change that breaks one breaks every device in the field: it needs a new
version of the format instead.
"""

import hashlib
import hmac
import json
import tomllib
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from ldpstream.mechanisms import CollectionSpec, FrameError, decode_frame, encode_frame
from ldpstream.mechanisms.wire.one_report import OneReport
from tests.exact.enumeration import Scripted, words_in

VECTORS = Path(__file__).parents[2] / "vectors"


def read(name: str) -> dict | list:
    return json.loads((VECTORS / name).read_text("utf-8"))


FRAMES = read("frames.json")
SPECS = {vector["name"]: vector for vector in read("specs.json")}
REPORTS = read("reports.json")
TOKENS = read("tokens.json")


def name_of(vector: dict) -> str:
    return vector["name"]


def spec_of(vector: dict) -> CollectionSpec:
    ((name, mapping),) = tomllib.loads(vector["toml"])["collection"].items()
    return CollectionSpec.from_mapping(name, mapping, base=VECTORS)


@pytest.mark.parametrize("vector", FRAMES["valid"], ids=name_of)
def test_frames_are_written_and_read_as_listed(vector: dict):
    fingerprint, length = bytes.fromhex(vector["fingerprint"]), vector["report_bytes"]
    runs = vector["runs"]
    times_ms = [run["time_ms"] for run in runs for _ in run["reports"]]
    rows = [list(y.to_bytes(length, "little")) for run in runs for y in run["reports"]]
    payload = np.array(rows, dtype=np.uint8)
    data = bytes.fromhex(vector["frame"])
    assert encode_frame(fingerprint, np.array(times_ms), payload) == data
    frame = decode_frame(data, fingerprint=fingerprint, report_bytes=length)
    assert frame.times_ms.tolist() == [run["time_ms"] for run in runs]
    assert frame.counts.tolist() == [len(run["reports"]) for run in runs]
    assert np.array_equal(frame.payload, payload)


@pytest.mark.parametrize("vector", FRAMES["refused"], ids=name_of)
def test_broken_frames_are_refused_for_the_listed_reason(vector: dict):
    with pytest.raises(FrameError) as caught:
        decode_frame(
            bytes.fromhex(vector["frame"]),
            fingerprint=bytes.fromhex(vector["fingerprint"]),
            report_bytes=vector["report_bytes"],
        )
    assert caught.value.reason == vector["reason"]


@pytest.mark.parametrize("vector", SPECS.values(), ids=name_of)
def test_specs_have_the_listed_fingerprints(vector: dict):
    spec = spec_of(vector)
    assert spec.canonical.decode("ascii") == vector["canonical"]
    assert spec.fingerprint.hex() == vector["fingerprint"]
    assert hashlib.sha256(spec.canonical).hexdigest()[:16] == vector["fingerprint"]
    # Only symbols are numbered.
    assert getattr(spec.mechanism, "outputs", None) == vector.get("outputs")
    assert spec.mechanism.report_bytes == vector["report_bytes"]


@pytest.mark.parametrize("vector", REPORTS, ids=name_of)
def test_reports_follow_from_the_words(vector: dict):
    mechanism = spec_of(SPECS[vector["spec"]]).mechanism
    entropy = Scripted([int(word, 16) for batch in vector["words"] for word in batch])
    reports = mechanism.privatize(np.array(vector["values"]), entropy=entropy)
    assert reports.tolist() == vector["reports"]
    assert not entropy.left


@pytest.mark.parametrize("vector", read("devices.json"), ids=name_of)
def test_devices_given_these_words_send_these_bytes(vector: dict):
    spec = spec_of(vector)
    assert spec.device_document() == vector["document"]
    entropy = Scripted(words_in(vector["words"]))
    reports = spec.privatize(vector["labels"], entropy=entropy)
    assert [row.tobytes().hex() for row in spec.mechanism.encode(reports)] == vector["reports"]
    assert not entropy.left
    times_ms = np.array(vector["times_ms"])
    assert spec.frame_reports(reports, times_ms=times_ms).hex() == vector["frame"]


LOSSES = read("losses.json")


@pytest.mark.parametrize("vector", read("devices.json"), ids=name_of)
def test_the_largest_losses_are_those_listed(vector: dict):
    assert spec_of(vector).mechanism.policy.largest_loss() == Fraction(LOSSES[vector["name"]])


@pytest.mark.parametrize("vector", TOKENS["tokens"], ids=lambda v: v["token"])
def test_tokens_and_their_partitions_are_those_listed(vector: dict):
    secret, fingerprint = bytes.fromhex(vector["secret"]), bytes.fromhex(vector["fingerprint"])
    start_ms = vector["start_ms"]
    signed = fingerprint + start_ms.to_bytes(8, "little", signed=True)
    assert hmac.new(secret, signed, "sha256").digest()[:8].hex() == vector["token"]
    rule = OneReport(window_ms=vector["window_ms"], partitions=vector["partitions"])
    tokens = rule.tokens(secret, fingerprint, np.array([vector["time_ms"]]))
    assert tokens.tobytes().hex() == vector["token"]
    assert rule.partition(tokens).tolist() == [vector["partition"]]


@pytest.mark.parametrize("vector", TOKENS["devices"], ids=name_of)
def test_devices_given_these_secrets_send_these_tokens(vector: dict):
    spec = spec_of(vector)
    assert spec.device_document() == vector["document"]
    words = words_in(vector["words"])
    reports = spec.privatize(vector["labels"], entropy=Scripted(words))
    assert [row.tobytes().hex() for row in spec.mechanism.encode(reports)] == vector["reports"]
    times_ms = np.array(vector["times_ms"])
    secrets = [bytes.fromhex(secret) for secret in vector["secrets"]]
    one_by_one = zip(secrets, times_ms[:, None], strict=True)
    tokens = np.concatenate([spec.tokens(secret, time_ms) for secret, time_ms in one_by_one])
    assert [token.tobytes().hex() for token in tokens] == vector["tokens"]
    frame = spec.frame_reports(reports, times_ms=times_ms, tokens=tokens)
    assert frame.hex() == vector["frame"]
    assert spec.one_report is not None
    assert spec.one_report.frame_partition(frame) == vector["partition"]
    if len(secrets) == 1:
        entropy = Scripted(words)
        alone = spec.frame(vector["labels"], times_ms=times_ms, entropy=entropy, secret=secrets[0])
        assert alone == frame
