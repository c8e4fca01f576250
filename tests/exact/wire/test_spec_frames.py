"""Frames that a spec makes of values: private reports, cut times, and no order."""

import itertools
import math
import time
from pathlib import Path

import numpy as np
import pytest

from ldpstream.mechanisms import ValueOutsideDomainError, decode_frame
from tests.exact.specs import BASE, make
from tests.seeded import SeededEntropy


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
