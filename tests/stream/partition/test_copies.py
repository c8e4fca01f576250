"""Reports that do not count: they are rejected one by one, and copied, up to 64 KiB."""

import numpy as np

from ldpstream.mechanisms.wire.frame import decode_frame, encode_frame
from tests.stream.batches import NOW_MS, WINDOW
from tests.stream.harness import Cluster, frame, make_context, make_spec


def test_a_message_with_one_fate_is_copied_unchanged():
    cluster = Cluster(make_context(WINDOW), now_ms=NOW_MS)
    message = frame((NOW_MS + 100, 0), (NOW_MS + 200, 1))
    cluster.produce(0, message)
    cluster.step()
    assert [copy.value for copy in cluster.copies] == [message]


def test_copies_never_exceed_64_kib():
    spec = make_spec()
    cluster = Cluster(make_context(WINDOW), now_ms=NOW_MS)
    count = 100_000
    late_ms, symbols = np.full(count, NOW_MS - 500), np.zeros((count, 1), dtype=np.uint8)
    cluster.produce(0, frame((NOW_MS, 0)))
    cluster.produce(0, encode_frame(spec.fingerprint, late_ms, symbols), b"x" * 100_000)
    cluster.step()
    assert cluster.head().late == count
    assert max(len(copy.value) for copy in cluster.copies) <= 64 * 1024
    late = [copy.value for copy in cluster.copies if copy.kind == "late"]
    frames = [decode_frame(value, fingerprint=spec.fingerprint, report_bytes=1) for value in late]
    assert sum(len(decoded.payload) for decoded in frames) == count
    (rejected,) = (copy.value for copy in cluster.copies if copy.kind == "rejected")
    assert rejected == b"x" * (64 * 1024)


def test_rejected_messages_are_not_copied_where_that_is_off():
    cluster = Cluster(make_context(WINDOW, copy_rejected=False), now_ms=NOW_MS)
    cluster.produce(0, frame((NOW_MS, 0)), None, frame((NOW_MS, 9)), frame((NOW_MS - 500, 0)))
    cluster.step()
    assert cluster.head().rejected == {"undecodable": 1, "range": 1}
    assert [copy.kind for copy in cluster.copies] == ["late"]
