"""Join the records that a packer has read of one partition, and cut them into packed messages.

All records are joined at once, and only their lengths and offsets are examined. In the usual case
(all lengths equal, offsets consecutive) no table of them is made.
"""

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np

from ldpstream.agents.kafka.whole_batches import Run
from ldpstream.agents.state.packed import MAX_MESSAGES, MAX_SPAN, Int64s, Packed, PackedRecords


def halves(packed: Packed) -> tuple[Packed, ...]:
    """Return the two halves of a message that is too large; empty if it holds one record."""
    n = len(packed.records)
    if n == 1:
        return ()
    first, second = packed.records[: n // 2], packed.records[n // 2 :]
    middle = int(second.offsets[0])
    return (
        Packed(packed.after, middle, packed.end, first),
        Packed(middle, packed.next, packed.end, second),
    )


def join(runs: Sequence[Run], arrived: Int64s) -> PackedRecords:
    """Return records in the form in which they are packed."""
    values = list(chain.from_iterable(run.values for run in runs))
    present = [value for value in values if value is not None]
    sizes = set(map(len, present))
    if len(sizes) == 1 and len(present) == len(values):
        (length,) = sizes
        lengths = np.broadcast_to(np.int64(length), (len(values),))
    else:
        length = None
        lengths = np.array([-1 if v is None else len(v) for v in values], dtype=np.int64)
    numbers = [
        np.arange(part[0], part[-1] + 1) if isinstance(part, range) else np.array(part)
        for part in (run.offsets for run in runs)
    ]
    return PackedRecords(
        np.concatenate(numbers, dtype=np.int64),
        lengths,
        np.frombuffer(b"".join(present), np.uint8),
        length,
        arrived,
        all(run.appended for run in runs),
    )


def cut(records: PackedRecords, limit_bytes: int) -> Iterator[PackedRecords]:
    """Yield parts of at most `limit_bytes`, or one record, each spanning less than 2^32 offsets."""
    offsets, n = records.offsets, len(records)
    near = int(offsets[-1]) - int(offsets[0]) <= MAX_SPAN
    if len(records.data) <= limit_bytes and n <= MAX_MESSAGES and near:
        yield records
        return
    ends, start = np.cumsum(np.maximum(records.lengths, 0)), 0
    while start < n:
        before = int(ends[start - 1]) if start else 0
        stop = int(np.searchsorted(ends, before + limit_bytes, side="right"))
        far = int(np.searchsorted(offsets, offsets[start] + MAX_SPAN, side="right"))
        stop = min(max(stop, start + 1), start + MAX_MESSAGES, far)
        yield records[start:stop]
        start = stop
