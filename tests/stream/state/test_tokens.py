"""`one_report` in the state machine: who is counted, what is stored, what is dropped."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldpstream.agents.state.encoding import decode_key, state_prefix
from ldpstream.agents.state.records import Key, RecordError
from ldpstream.agents.state.replica import Replica
from ldpstream.agents.state.tokens import Tokens, decode_tokens, encode_tokens
from ldpstream.agents.state.windows import WindowSpec
from ldpstream.mechanisms.wire.frame import decode_frame, encode_frame
from ldpstream.mechanisms.wire.spec import CollectionSpec
from tests.stream.harness import Cluster, make_context

WINDOW = WindowSpec(size_ms=1_000, hop_ms=1_000, grace_ms=500, future_ms=500, retention_ms=1_000)
START_MS = 1_287_000_000_000
SPEC = CollectionSpec.from_mapping(
    "tested",
    {
        "mechanism": "block-hadamard",
        "epsilon": 1.0,
        "domain": {"size": 20},
        "precision": "1ms",
        "one_report": True,
        "partitions": 2,
        "window": {"size": "1s"},
    },
    base=Path(),
)
CONTEXT = make_context(WINDOW, spec=SPEC, token_chunk=16)
PREFIX = state_prefix(CONTEXT)


def frame(*reports: tuple[int, int, int]) -> bytes:
    """Return a frame of reports `(time, symbol, token)`; even tokens belong to partition 0."""
    rows = [[y, *token.to_bytes(8, "little")] for _, y, token in reports]
    times_ms = np.array([time_ms for time_ms, _, _ in reports])
    return encode_frame(SPEC.fingerprint, times_ms, np.array(rows, dtype=np.uint8))


def stored(cluster: Cluster, pane: int) -> set[int]:
    replica = cluster.replicas[0]
    names = [n for n in replica.cells if n.kind == "token" and n.number == pane]
    return {int(token) for name in names for token in decode_tokens(replica.value(name))}


def test_full_chunks_are_written_once_and_closed_panes_have_none():
    cluster = Cluster(CONTEXT, partitions=2, now_ms=START_MS)
    pane, written = START_MS // 1_000, Counter[int]()
    for number in range(10):
        cluster.produce(0, frame(*((START_MS, 0, 2 * (10 * number + i)) for i in range(10))))
        cluster.ingest(0)
        flush = cluster.flush(0)
        keys = [decode_key(PREFIX, key) for key, _ in flush.cells]
        written.update(k.name.chunk for k in keys if isinstance(k, Key) and k.name.kind == "token")
    assert len(stored(cluster, pane)) == 100
    assert set(written) == set(range(7))
    assert max(written.values()) <= 3  # ten at a time into chunks of sixteen
    cluster.now_ms += 5_000
    cluster.produce(0, frame((START_MS + 4_000, 0, 2)), frame((START_MS, 0, 2), (START_MS, 0, 500)))
    cluster.ingest(0)
    cluster.flush(0)
    assert stored(cluster, pane) == set()
    assert stored(cluster, pane + 4) == {2}
    assert (cluster.head().n, cluster.head().late) == (101, 2)
    cluster.sweep(0)
    kept = {decode_key(PREFIX, key) for _, key, value in cluster.log[0] if value is None}
    assert sum(key is not None and key.name.kind == "token" for key in kept) >= 7


def test_copies_say_why_and_hold_their_tokens():
    cluster = Cluster(CONTEXT, partitions=2, now_ms=START_MS)
    reports = [(START_MS, 1, 2), (START_MS, 2, 2), (START_MS, 3, 3), (START_MS, 99, 5)]
    cluster.produce(0, frame(*reports), frame(reports[0]))
    cluster.ingest(0)
    cluster.flush(0)
    told = [(dict(c.headers)["reason"].decode(), c.kind, c.value) for c in cluster.copies]
    assert sorted(reason for reason, _, _ in told) == ["partition", "range", "repeated", "repeated"]
    for reason, kind, value in told:
        copied = decode_frame(value, fingerprint=SPEC.fingerprint, report_bytes=SPEC.report_bytes)
        rows = {"partition": 2, "range": 3, "repeated": 1 if copied.payload[0, 0] == 2 else 0}
        assert kind == "rejected"
        assert value == frame(reports[rows[reason]])
    assert cluster.head().rejected == {"partition": 1, "range": 1, "repeated": 2}


def test_looking_up_panes_does_not_scan_all_tokens_for_each():
    n, looked = 2_000, 0

    class Counted(np.ndarray):
        def __array_ufunc__(
            self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any
        ) -> Any:
            nonlocal looked
            plain = [one.view(np.ndarray) if isinstance(one, Counted) else one for one in inputs]
            looked += max(map(np.size, plain))
            return getattr(ufunc, method)(*plain, **options)

    tokens, numbers = Tokens(16), np.arange(n, dtype=np.uint64)
    for pane in range(0, n, 2):
        tokens.add(pane, numbers[pane : pane + 1])
    panes = np.arange(n)[::-1].view(Counted)
    assert tokens.repeated(panes, numbers[::-1]).tolist() == [False, True] * (n // 2)
    assert 0 < looked <= 10 * n


@pytest.mark.parametrize("lengths", [{1: 16}, {0: 15, 1: 1}, {0: 17}, {0: 16, 1: 17}])
def test_chunks_that_no_owner_could_have_written_are_refused(lengths: dict[int, int]):
    stored = {
        number: encode_tokens(np.arange(length, dtype=np.uint64))
        for number, length in lengths.items()
    }
    with pytest.raises(RecordError, match="have a gap, or one is too long"):
        Tokens(16).load(7, stored)


def test_a_crowded_window_is_closed_by_the_next_one():
    cluster = Cluster(replace(CONTEXT, tokens=9), partitions=2, now_ms=START_MS + 5_000)
    cluster.produce(0, frame(*((START_MS, 1, 2 * i) for i in range(8))))
    # Refused and repeated reports do not move the watermark; a later window does.
    cluster.produce(0, frame((START_MS + 900, 1, 14), (START_MS + 900, 1, 2)))
    cluster.ingest(0)
    assert cluster.part().work.clock == START_MS
    cluster.flush(0)
    assert cluster.head().rejected == {"crowded": 6, "repeated": 1}
    cluster.take_over(0)
    cluster.produce(0, frame((START_MS, 1, 40)), frame((START_MS + 2_000, 1, 40)))
    cluster.produce(0, frame((START_MS, 1, 40), (START_MS, 1, 2)))
    cluster.ingest(0)
    cluster.flush(0)
    head = cluster.head()
    assert (head.n, head.late, head.rejected) == (4, 2, {"crowded": 7, "repeated": 1})
    assert {dict(copy.headers)["reason"] for copy in cluster.copies} == {
        b"crowded",
        b"repeated",
        b"late",
    }


@pytest.mark.parametrize(("grace_ms", "most"), [(0, 50), (499, 50), (500, 33), (3_500, 16)])
def test_open_windows_share_the_room_for_tokens(grace_ms: int, most: int):
    context = replace(CONTEXT, tokens=100, window=replace(WINDOW, grace_ms=grace_ms))
    assert context.tokens_a_pane == most
    cluster = Cluster(context, partitions=2, now_ms=START_MS + 60_000)
    for window in range(9):
        times_ms = [START_MS + window * 1_000 + 999] * 60
        cluster.produce(0, frame(*((t, 1, 2 * i) for i, t in enumerate(times_ms))))
        cluster.ingest(0)
        cluster.flush(0)
        held = sum(name.kind == "token" for name in cluster.replicas[0].cells)
        assert 0 < held <= 100 / 16 + context.window.open_panes
    assert cluster.head().n == 9 * most


def test_partitions_that_the_spec_does_not_know_have_no_reports():
    cluster = Cluster(CONTEXT, partitions=3, now_ms=START_MS)
    cluster.step()
    for p in range(3):
        cluster.produce(p, frame((START_MS, 1, 10), (START_MS, 1, 11)))
    cluster.steps(2)
    assert [cluster.head(p).n for p in range(3)] == [1, 1, 0]
    assert [cluster.head(p).rejected["partition"] for p in range(3)] == [1, 1, 2]


def test_tokens_that_are_missing_or_torn_are_refused():
    cluster = Cluster(CONTEXT, partitions=2, now_ms=START_MS)
    cluster.produce(0, frame(*((START_MS, 0, 2 * i) for i in range(40))))
    cluster.ingest(0)
    cluster.flush(0)
    (at, *_) = [i for i, (_, key, _) in enumerate(cluster.log[0]) if kind(key) == "token"]
    offset, key, value = cluster.log[0][at]
    for broken, why in (
        ([], "has 24 tokens but its total says 40 reports"),
        ([(offset, key, value[:-1])], "chunk of tokens has the wrong length"),
        ([(offset, key, b"\2" + value[1:])], "chunk of tokens has format version 2"),
        ([(offset, key, value[:-8])], "has 39 tokens but its total says 40 reports"),
    ):
        log = [*cluster.log[0][:at], *broken, *cluster.log[0][at + 1 :]]
        with pytest.raises(RecordError, match=why):
            Replica(CONTEXT, 0).read(log, position=len(cluster.log[0]), end=len(cluster.log[0]))


def kind(data: bytes) -> str:
    key = decode_key(PREFIX, data)
    return key.name.kind
