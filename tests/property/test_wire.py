"""The wire: round trips, and any bytes at all end in a frame or in a named error."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpstream.mechanisms import FrameError, decode_frame, encode_frame, frame_fingerprint

FINGERPRINT = bytes(range(8))
times = st.integers(-(2**63), 2**63 - 1)
lengths = st.integers(1, 5)


@st.composite
def reports(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Times (n,) and payload (n, B), with repeated times."""
    n, report_bytes = draw(st.integers(1, 30)), draw(lengths)
    few = draw(st.lists(times, min_size=1, max_size=4))
    chosen = draw(st.lists(st.sampled_from(few), min_size=n, max_size=n))
    data = draw(st.binary(min_size=n * report_bytes, max_size=n * report_bytes))
    payload = np.frombuffer(data, dtype=np.uint8).reshape(n, report_bytes)
    return np.array(chosen, dtype=np.int64), payload


def refusal(data: bytes, report_bytes: int) -> str | None:
    """The reason for which a message is refused, None where it is a frame."""
    try:
        decode_frame(data, fingerprint=FINGERPRINT, report_bytes=report_bytes)
    except FrameError as error:
        return error.reason
    return None


def read(data: bytes, report_bytes: int) -> tuple[np.ndarray, np.ndarray]:
    frame = decode_frame(data, fingerprint=FINGERPRINT, report_bytes=report_bytes)
    return np.repeat(frame.times_ms, frame.counts), frame.payload


@given(reports())
def test_what_is_encoded_is_decoded_sorted_by_time(case: tuple[np.ndarray, np.ndarray]):
    times_ms, payload = case
    data = encode_frame(FINGERPRINT, times_ms, payload)
    order = np.argsort(times_ms, kind="stable")
    decoded_times, decoded_payload = read(data, payload.shape[1])
    assert np.array_equal(decoded_times, times_ms[order])
    assert np.array_equal(decoded_payload, payload[order])
    runs = len(np.unique(times_ms))
    assert len(data) == 12 + 12 * runs + payload.size
    assert encode_frame(FINGERPRINT, decoded_times, decoded_payload) == data


@given(reports(), st.data())
def test_a_truncated_or_extended_frame_is_undecodable(
    case: tuple[np.ndarray, np.ndarray], data: st.DataObject
):
    times_ms, payload = case
    whole = encode_frame(FINGERPRINT, times_ms, payload)
    short = whole[: data.draw(st.integers(0, len(whole) - 1))]
    for broken in (short, whole + data.draw(st.binary(min_size=1, max_size=9))):
        with pytest.raises(FrameError) as caught:
            decode_frame(broken, fingerprint=FINGERPRINT, report_bytes=payload.shape[1])
        assert caught.value.reason == "undecodable"


@given(st.binary(max_size=80), lengths)
def test_any_bytes_end_in_a_frame_or_a_frame_error(data: bytes, report_bytes: int):
    headed = [data, b"\x01\x00" + data, b"\x01\x00\x01\x00" + FINGERPRINT + data]
    for message in headed:
        reason = refusal(message, report_bytes)
        assert reason in {None, "undecodable", "fingerprint"}
        if reason is None:
            decoded_times, payload = read(message, report_bytes)
            assert len(decoded_times) == len(payload) >= 1
            assert payload.shape[1] == report_bytes


@given(reports(), st.data())
def test_a_flipped_byte_changes_the_reading_or_is_refused(
    case: tuple[np.ndarray, np.ndarray], data: st.DataObject
):
    times_ms, payload = case
    whole = encode_frame(FINGERPRINT, times_ms, payload)
    place = data.draw(st.integers(0, len(whole) - 1))
    broken = bytearray(whole)
    broken[place] ^= data.draw(st.integers(1, 255))
    reason = refusal(bytes(broken), payload.shape[1])
    if reason is not None:
        assert reason == ("fingerprint" if 4 <= place < 12 else "undecodable")
        return
    decoded_times, decoded_payload = read(bytes(broken), payload.shape[1])
    before_times, before_payload = read(whole, payload.shape[1])
    same_times = np.array_equal(decoded_times, before_times)
    assert not (same_times and np.array_equal(decoded_payload, before_payload))


@given(reports(), st.binary(min_size=8, max_size=8))
def test_another_fingerprint_is_named(case: tuple[np.ndarray, np.ndarray], other: bytes):
    times_ms, payload = case
    data = encode_frame(other, times_ms, payload)
    assert frame_fingerprint(data) == other
    if other != FINGERPRINT:
        # Before the length: another spec's reports have another length.
        with pytest.raises(FrameError, match=other.hex()) as caught:
            decode_frame(data, fingerprint=FINGERPRINT, report_bytes=payload.shape[1] + 1)
        assert caught.value.reason == "fingerprint"


def test_the_payload_is_a_view_of_the_message():
    data = encode_frame(FINGERPRINT, np.zeros(1000, dtype=np.int64), np.ones((1000, 3), np.uint8))
    frame = decode_frame(data, fingerprint=FINGERPRINT, report_bytes=3)
    assert not frame.payload.flags.owndata
    assert not frame.payload.flags.writeable


def test_the_largest_number_of_times_and_one_more():
    times_ms = np.arange(65_535, dtype=np.int64)
    payload = np.zeros((65_536, 1), dtype=np.uint8)
    data = encode_frame(FINGERPRINT, times_ms, payload[:-1])
    assert len(decode_frame(data, fingerprint=FINGERPRINT, report_bytes=1).times_ms) == 65_535
    with pytest.raises(ValueError, match="65535 different times"):
        encode_frame(FINGERPRINT, np.arange(65_536, dtype=np.int64), payload)


@pytest.mark.parametrize(
    ("fingerprint", "times_ms", "payload"),
    [
        (FINGERPRINT, np.zeros(0, np.int64), np.zeros((0, 1), np.uint8)),
        (FINGERPRINT, np.zeros(2, np.int64), np.zeros((1, 1), np.uint8)),
        (FINGERPRINT, np.zeros(2, np.int64), np.zeros(2, np.uint8)),
        (FINGERPRINT[:7], np.zeros(1, np.int64), np.zeros((1, 1), np.uint8)),
    ],
)
def test_impossible_frames_are_refused(
    fingerprint: bytes, times_ms: np.ndarray, payload: np.ndarray
):
    with pytest.raises(ValueError, match="expected"):
        encode_frame(fingerprint, times_ms, payload)
