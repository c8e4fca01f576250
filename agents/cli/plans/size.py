"""What a collection takes, given how many report: messages, disk, memory, processors.

docs/how-to/size.md explains every line, and docs/performance.md has what the constants are from.
"""

import math
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from ldpstream.agents.config import CollectionConfig
from ldpstream.mechanisms.base.times import format_duration
from ldpstream.mechanisms.wire.frame import FINGERPRINT_BYTES, encode_frame

FRAME_REPORTS: Final = 1_000
PEAK: Final = 10
"""How many times the mean the busiest moment is taken to be."""
REPLICAS: Final = 3
_DAY_MS: Final = 86_400_000
_SECONDS: Final = 86_400
_RECORD_BYTES: Final = 68
"""Kafka's header of a batch with one record, and the record's own fields."""
_SINGLES, _FRAMED = 400_000.0, 50_000_000.0
"""Reports a second that a core of a worker counts: less than two thirds of what was measured."""
_CHUNK, _CHUNK_BYTES, _PANE_BYTES = 4_096, 14, 25
_FINAL_BYTES, _ENTRY_BYTES = 500, 180
_TOKEN_BYTES: Final = 8.1
_MIB: Final = 1 << 20
_BARE_MIB, _START_MIB, _PARTITION_BYTES, _CELL_BYTES = 136, 29, 48 << 10, 750


@dataclass(frozen=True, kw_only=True)
class SizePlan:
    """Of one collection. State and memory are upper bounds, all else is expected.

    The fields that are pairs are for reports in messages of their own, and in frames of
    `FRAME_REPORTS`.
    """

    reports_a_day: float
    messages_a_second: tuple[float, float]
    source_bytes_a_day: tuple[float, float]
    source_bytes: tuple[float, float]
    processors: tuple[float, float]
    state_bytes: float
    memory_bytes: float
    workers: int
    partitions: int

    @classmethod
    def of(cls, collection: CollectionConfig, respondents: int) -> Self:
        """Return the size for so many respondents of each window."""
        window = collection.window
        daily = respondents * _DAY_MS / window.size_ms
        peak = PEAK * daily / _SECONDS
        messages = daily, daily / FRAME_REPORTS
        lengths = [_message_bytes(collection, n) + _RECORD_BYTES for n in (1, FRAME_REPORTS)]
        a_day = messages[0] * lengths[0], messages[1] * lengths[1]
        kept = [REPLICAS * one * collection.retention_ms / _DAY_MS for one in a_day]
        processors = peak / _SINGLES, peak / _FRAMED
        state, records = _state(collection, respondents * window.pane_ms / window.size_ms)
        partitions = collection.partitions
        memory = (_BARE_MIB + _START_MIB) * _MIB + partitions * _PARTITION_BYTES
        return cls(
            reports_a_day=daily,
            messages_a_second=(PEAK * messages[0] / _SECONDS, PEAK * messages[1] / _SECONDS),
            source_bytes_a_day=a_day,
            source_bytes=(kept[0], kept[1]),
            processors=processors,
            state_bytes=state,
            memory_bytes=memory + state + _CELL_BYTES * records,
            # One more than counts, so that one can go away.
            workers=1 + max(1, math.ceil(processors[0])),
            partitions=partitions,
        )


def _message_bytes(collection: CollectionConfig, reports: int) -> int:
    rows = np.zeros((reports, collection.spec.report_bytes), dtype=np.uint8)
    return len(encode_frame(bytes(FINGERPRINT_BYTES), np.zeros(reports, dtype=np.int64), rows))


def _state(collection: CollectionConfig, respondents: float) -> tuple[float, int]:
    """Return the most bytes of a state, and of how many records, for so many of each pane."""
    window, mechanism = collection.window, collection.spec.mechanism
    opened = math.ceil(window.grace_ms / window.pane_ms) + 1
    closed = math.ceil(window.retention_ms / window.pane_ms)
    entries = mechanism.statistic_size
    chunks = math.ceil(entries / _CHUNK)
    width = next(w for w in (1, 2, 4, 8) if respondents < 256**w or w == 8)
    pane = width * entries + _CHUNK_BYTES * chunks + _PANE_BYTES
    panes = opened * collection.partitions + closed
    reserved = collection.minimum * mechanism.report_bytes * opened * collection.partitions
    tokens = 0.0 if collection.spec.one_report is None else opened * _TOKEN_BYTES * respondents
    options = collection.options
    listed = mechanism.size if options.top is None else min(options.top, mechanism.size)
    final = _FINAL_BYTES + _ENTRY_BYTES * (listed + len(options.ranges) + len(options.quantiles))
    return panes * pane + reserved + tokens + closed * final, panes * (chunks + 1)


def lines_of(size: SizePlan, collection: CollectionConfig, respondents: int) -> list[str]:
    """Return the size in words, a line each."""
    window = format_duration(collection.window.size_ms)
    kept = format_duration(collection.retention_ms)
    heading = (
        f"{collection.name}: {respondents:,} respondents in each window of {window}, "
        f"{size.reports_a_day:,.0f} reports a day; peaks of {PEAK} times the mean"
    )
    frames = f"in frames of {FRAME_REPORTS:,}"
    rows = [
        ("", "one a message", frames),
        ("messages a second, at peaks", *map(_rounded, size.messages_a_second)),
        ("processors of workers, at peaks", *map(_rounded, size.processors)),
        ("source topic, a day", *map(_bytes, size.source_bytes_a_day)),
        (f"source topic, {kept} in {REPLICAS} replicas", *map(_bytes, size.source_bytes)),
        ("state, at most", _bytes(size.state_bytes), ""),
        ("memory of each worker, at most", _bytes(size.memory_bytes), ""),
        ("workers, one of them in reserve", f"{size.workers:,}", ""),
        ("partitions, as configured", f"{size.partitions:,}", ""),
    ]
    table = [f"{what:<42}{one:>16}{other:>20}".rstrip() for what, one, other in rows]
    few = f"collection.{collection.name}.partitions: fewer than workers: set {size.workers}"
    return [heading, *table, *([few] if size.partitions < size.workers else [])]


def _rounded(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.2g}"


def _bytes(n: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if n < 1000:
            return f"{n:.3g} {unit}"
        n /= 1000
    return f"{n:,.3g} TB"
