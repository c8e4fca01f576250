"""Every format that others could write: its decoder, valid records, and the decoder's errors.

A decoder may return something or raise one of its own errors; any other exception is a defect.
"""

import json
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpstream.agents.config.query.options import EstimateRequest
from ldpstream.agents.document.answers import (
    CollectionList,
    CollectionStatus,
    PartitionStatus,
    Problem,
    Readiness,
)
from ldpstream.agents.document.client.errors import ApiError
from ldpstream.agents.document.client.session import parse
from ldpstream.agents.state.cell_encoding import (
    Totals,
    decode_chunk,
    decode_totals,
    encode_chunk,
    encode_totals,
)
from ldpstream.agents.state.close_orders import (
    Control,
    ControlError,
    decode_control,
    encode_control,
)
from ldpstream.agents.state.encoding import (
    decode_head,
    decode_key,
    encode_head,
    encode_key,
    state_prefix,
)
from ldpstream.agents.state.listing import windows
from ldpstream.agents.state.partition import Partition
from ldpstream.agents.state.records import HEAD, REASONS, Head, Key, Name, RecordError
from ldpstream.agents.state.replica import Replica
from ldpstream.agents.state.tokens import decode_tokens, encode_tokens
from ldpstream.agents.state.view import add_up, snapshot
from ldpstream.agents.state.windows import NEVER, WindowSpec
from ldpstream.agents.web.estimates import read_body
from ldpstream.agents.web.requests import AnswerError
from tests.fuzz.mutations import mutated, mutated_json
from tests.stream.harness import Cluster, frame, make_context

ID = bytes(range(16))
WINDOW = WindowSpec(size_ms=8, hop_ms=4, grace_ms=2, retention_ms=100)
CONTEXT = make_context(WINDOW, chunk=1)
PREFIX = state_prefix(CONTEXT)


@dataclass(frozen=True)
class Format:
    """One kind of record: `make` draws a damaged one."""

    name: str
    errors: tuple[type[Exception], ...]
    decode: Callable[[bytes], object]
    make: Callable[[random.Random], bytes]

    def fuzz(self, rng: random.Random) -> bool:
        """Decode one damaged record; return whether it was taken."""
        with suppress(*self.errors):
            self.decode(self.make(rng))
            return True
        return False


def _damaged(*records: bytes) -> Callable[[random.Random], bytes]:
    return lambda rng: mutated(rng.choice(records), rng)


def _damaged_json(*values: Any) -> Callable[[random.Random], bytes]:
    return lambda rng: mutated_json(rng.choice(values), rng)


def _control(data: bytes) -> None:
    order = decode_control(data)
    assert -(1 << 47) < order.until_ms < 1 << 48
    assert all(0 <= end < 1 << 63 and 0 <= p < 10**10 for p, end in order.ends.items())
    assert decode_control(encode_control(order)) == order


def _head(data: bytes) -> None:
    head = decode_head(Key(HEAD, 1, 1), data)
    # What was decoded can be encoded again.
    encode_head(head)


def _status(model: Any) -> Callable[[bytes], object]:
    return lambda data: parse(model, data, "http://worker")


_ENDS = {0: 17, 1: 0, 2: (1 << 63) - 1}
_HEADS = (
    Head(epoch=1, seq=1, next=9, n=3, clock=12, closed=2, partitions=2, lineage={1: 1, 7: 3}),
    Head(
        clock=NEVER,
        rejected=dict.fromkeys(REASONS, 3),
        source=ID,
        cutover=4,
        lineage={5: 9},
    ),
)
_PARTITION = PartitionStatus(
    partition=0,
    owned=True,
    next=1,
    end_offset=2,
    lag=1,
    watermark="2026-11-21T10:00:00Z",
    idle=False,
    counted=3,
    late=0,
    rejected={"range": 1},
    lost_offsets=0,
)
_STATUS = CollectionStatus(
    collection="city",
    fingerprint="00",
    ready=True,
    stopped=False,
    problems=["x"],
    counted=1,
    late=0,
    rejected=0,
    lost_offsets=0,
    partitions=[_PARTITION],
)
_BODY = {
    "top": 3,
    "quantiles": [0.5],
    "ranges": ["0..3", {"name": "a", "bounds": [[0, 1]]}],
    "linear": [{"name": "w", "weights": {"a": 1.0}}, {"name": "v", "weights": [1, 2.5]}],
    "confidence": 0.9,
    "method": "normal",
}


def formats() -> list[Format]:
    """Return all formats of single records."""
    chunks = encode_chunk(np.array([3, 0, -2, 9])), encode_chunk(np.array([0] * 99 + [1 << 40]))
    key = encode_key(PREFIX, Key(Name("count", 3, 1), 7, 9))
    tokens = encode_tokens(np.arange(5, dtype=np.uint64))
    order = json.loads(encode_control(Control(1_795_255_200_000, _ENDS)))
    return [
        Format("control", (ControlError,), _control, _damaged_json(order)),
        Format("key", (RecordError,), lambda data: decode_key(PREFIX, data), _damaged(key)),
        Format("head", (RecordError,), _head, _damaged(*map(encode_head, _HEADS))),
        Format("chunk", (RecordError,), lambda d: decode_chunk(d, 4), _damaged(*chunks)),
        Format("totals", (RecordError,), decode_totals, _damaged(encode_totals(Totals(1, 2, 3)))),
        Format("tokens", (RecordError,), decode_tokens, _damaged(tokens)),
        Format("status", (ApiError,), _status(CollectionStatus), _damaged_json(_dump(_STATUS))),
        Format(
            "readiness",
            (ApiError,),
            _status(Readiness),
            _damaged_json(_dump(Readiness(ready=False, reasons=["x"]))),
        ),
        Format("list", (ApiError,), _status(CollectionList), _damaged_json({"collections": []})),
        Format("problem", (ApiError,), _status(Problem), _damaged_json({"error": "x"})),
        Format("body", (AnswerError,), _body, _damaged_json(_BODY)),
    ]


def _body(raw: bytes) -> EstimateRequest:
    return read_body(raw)


def _dump(answer: Any) -> Any:
    return json.loads(answer.model_dump_json())


def fuzz_changelog(rng: random.Random) -> bool:
    """Read a log with damaged records and use it; return whether it was taken."""
    log = [(key, value) for _, key, value in rng.choice(_LOGS)]
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(log))
        key, value = log[at]
        kind = rng.randrange(4)
        if kind == 0:
            log[at] = mutated(key, rng), value
        elif kind == 1:
            log.insert(at, (mutated(key, rng), mutated(value or b"", rng)))
        elif kind == 2:
            log.insert(at, (key, None))
        else:
            log[at] = key, mutated(value or b"", rng)
    replica, end, at = Replica(CONTEXT, 0), len(log), 0
    try:
        while at < end:
            stop = min(end, at + rng.choice((1, 3, end)))
            some = [(offset, *log[offset]) for offset in range(at, stop)]
            replica.read(some, position=stop, end=rng.choice((stop, end)))
            at = stop
        replica.read([], position=end, end=end)
        _use(replica)
    except RecordError:
        return False
    return True


def _use(replica: Replica) -> None:
    """Do whatever a worker does with a replica that it has read."""
    found = windows(CONTEXT, [replica])
    for window in found[:3]:
        add_up(CONTEXT, snapshot(CONTEXT, [replica], window.start_ms, window.end_ms))
    part = Partition.load(CONTEXT, 0, [replica], epoch=3)
    if part is not None:
        part.ingest([(part.next, frame((30, 1), (31, 0)))], now_ms=50)
        part.clock(replicas=[replica], controls=[], known_partitions=1, now_ms=90)
        part.flush()
        with suppress(ValueError):
            part.publications()


def _log(steps: int) -> list[tuple[int, bytes, bytes | None]]:
    cluster = Cluster(CONTEXT)
    for step in range(steps):
        cluster.now_ms = step * 5
        cluster.produce(0, frame((step * 5, 1), (step * 5 + 1, 0)))
        cluster.step()
        if step % 3 == 2:
            cluster.take_over(0)
    return list(cluster.log[0])


_LOGS = [_log(2), _log(12)]
