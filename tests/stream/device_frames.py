"""Collections for tests of devices, and the contents of frames that devices send."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms import CollectionSpec, decode_frame
from tests.exact.wire.test_vectors import spec_of
from tests.stream.serving import START_MS

NUMBERS = """[collection.ages]
mechanism = "randomized-response"
epsilon = 1.0
domain = { size = 1000 }
"""
BITS = NUMBERS.replace("randomized-response", "l1-bits").replace("1000", "20")


def collection(toml: str = NUMBERS) -> CollectionSpec:
    return spec_of({"toml": toml})


def read(spec: CollectionSpec, frame: bytes) -> tuple[list[int], list[Any]]:
    """Return the times of a frame's reports, and the reports."""
    size = spec.mechanism.report_bytes
    found = decode_frame(frame, fingerprint=spec.fingerprint, report_bytes=size)
    reports, valid = spec.mechanism.decode(found.payload)
    assert valid.all()
    return np.repeat(found.times_ms, found.counts).tolist(), reports.tolist()


def times(n: int, seconds: int = 3) -> NDArray[np.int64]:
    return START_MS + 7 + 1_000 * (np.arange(n, dtype=np.int64)[::-1] % seconds)
