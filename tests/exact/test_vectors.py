"""The vectors of docs/wire.md: bytes that every implementation must write and read.

They are permanent. A change that breaks one breaks every device in the field: it needs a new
version of the format instead.
"""

import hashlib
import json
import tomllib
from pathlib import Path

import numpy as np
import pytest

from ldpstream.mechanisms import CollectionSpec, FrameError, decode_frame, encode_frame

VECTORS = Path(__file__).parents[1] / "vectors"


def read(name: str) -> dict | list:
    return json.loads((VECTORS / name).read_text("utf-8"))


FRAMES = read("frames.json")
SPECS = {vector["name"]: vector for vector in read("specs.json")}
REPORTS = read("reports.json")


def name_of(vector: dict) -> str:
    return vector["name"]


def spec_of(vector: dict) -> CollectionSpec:
    ((name, mapping),) = tomllib.loads(vector["toml"])["collection"].items()
    return CollectionSpec.from_mapping(name, mapping, base=VECTORS)


@pytest.mark.parametrize("vector", FRAMES["valid"], ids=name_of)
def test_frames(vector: dict):
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
def test_refused_frames(vector: dict):
    with pytest.raises(FrameError) as caught:
        decode_frame(
            bytes.fromhex(vector["frame"]),
            fingerprint=bytes.fromhex(vector["fingerprint"]),
            report_bytes=vector["report_bytes"],
        )
    assert caught.value.reason == vector["reason"]


@pytest.mark.parametrize("vector", SPECS.values(), ids=name_of)
def test_specs(vector: dict):
    spec = spec_of(vector)
    assert spec.canonical.decode("ascii") == vector["canonical"]
    assert spec.fingerprint.hex() == vector["fingerprint"]
    assert hashlib.sha256(spec.canonical).hexdigest()[:16] == vector["fingerprint"]
    # Only symbols are numbered.
    assert getattr(spec.mechanism, "outputs", None) == vector.get("outputs")
    assert spec.mechanism.report_bytes == vector["report_bytes"]


class Words:
    """Hands out the vector's 64-bit words, batch by batch."""

    def __init__(self, batches: list[list[str]]) -> None:
        self.batches = [np.array([int(w, 16) for w in b], dtype=np.uint64) for b in batches]

    def words(self, n: int) -> np.ndarray:
        batch = self.batches.pop(0)
        assert len(batch) == n
        return batch


@pytest.mark.parametrize("vector", REPORTS, ids=name_of)
def test_reports(vector: dict):
    mechanism = spec_of(SPECS[vector["spec"]]).mechanism
    entropy = Words(vector["words"])
    reports = mechanism.privatize(np.array(vector["values"]), entropy=entropy)
    assert reports.tolist() == vector["reports"]
    assert not entropy.batches
