"""What has to be counted, computed from a source topic alone: the truth of a run with faults.

It follows docs/wire.md and docs/internals/architecture.md and shares no code with the engine:
messages are read without a group, in the order of their offsets, and the outcome of every report is
decided one run after the other. Where idle partitions close panes, wall time matters too;
`ambiguous` counts the reports whose outcome it could change: none in a stream made for this.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from aiokafka import ConsumerRecord
from numpy.typing import NDArray

from ldpstream.agents.config import CollectionConfig
from tests.crash.faults.journal import crc
from tests.crash.faults.stream import SKEW_MS
from tests.fuzz.expected import read_runs

Rows = NDArray[np.uint8]
IDLE_SLACK_MS = 2 * SKEW_MS + 10_000
"""How far the clock of an idle partition can be ahead of the one at which a message was stored."""


@dataclass
class Truth:
    """All of a collection's reports; `panes[start_ms]` is the statistic of a pane."""

    n: int = 0
    panes: dict[int, NDArray[np.int64]] = field(default_factory=dict)
    late: dict[int, int] = field(default_factory=dict)
    rejected: Counter[str] = field(default_factory=Counter)
    late_at: set[tuple[int, int]] = field(default_factory=set)
    rejected_at: set[tuple[int, int]] = field(default_factory=set)
    values: dict[tuple[int, int], int] = field(default_factory=dict)
    """The checksum of a message's value, by `(partition, offset)`."""
    ambiguous: int = 0
    messages: int = 0

    def reject(self, at: tuple[int, int], reason: str, count: int) -> None:
        """Note this many rejected reports of a message."""
        self.rejected[reason] += count
        self.rejected_at.add(at)

    def windows(self, config: CollectionConfig) -> dict[int, NDArray[np.int64]]:
        """Return the statistic of every window that holds reports, by its start."""
        size_ms, hop_ms = config.window.size_ms, config.window.hop_ms
        found: dict[int, NDArray[np.int64]] = {}
        for pane_ms, statistic in self.panes.items():
            first = -((size_ms - 1 - pane_ms) // hop_ms) * hop_ms
            for start in range(first, pane_ms + 1, hop_ms):
                found[start] = found[start] + statistic if start in found else statistic.copy()
        return found


def recount(
    config: CollectionConfig,
    records: Iterable["ConsumerRecord[bytes, bytes]"],
    *,
    future_ms: int,
) -> Truth:
    """Decide every report of committed records, by partition in the order of their offsets.

    Times from `future_ms` on are from the future whenever they were read.
    """
    truth, clocks = Truth(), dict.fromkeys(range(config.partitions), -(1 << 62))
    ordered = sorted(records, key=lambda record: (record.partition, record.offset))
    for record in ordered:
        at = record.partition, record.offset
        if at in truth.values:
            raise ValueError(f"offset {at} was read twice")
        truth.values[at] = crc(record.value)
        truth.messages += 1
        clocks[record.partition] = _message(
            config, truth, record, clocks[record.partition], future_ms
        )
    return truth


def _message(
    config: CollectionConfig,
    truth: Truth,
    record: "ConsumerRecord[bytes, bytes]",
    clock: int,
    future_ms: int,
) -> int:
    """Decide the runs of one message in the order of their times; return the watermark after it."""
    at = record.partition, record.offset
    runs = read_runs(record.value, config.spec.fingerprint, config.spec.mechanism.report_bytes)
    if isinstance(runs, str):
        truth.reject(at, runs, 1)
        return clock
    for time_ms, reports in sorted(runs, key=lambda run: run[0]):
        rows = np.frombuffer(b"".join(reports), dtype=np.uint8).reshape(len(reports), -1)
        if time_ms % config.spec.precision_ms:
            truth.reject(at, "precision", len(rows))
        elif time_ms >= future_ms:
            truth.reject(at, "future", len(rows))
        else:
            clock = _run(config, truth, record, time_ms, rows, clock)
    return clock


def _run(
    config: CollectionConfig,
    truth: Truth,
    record: "ConsumerRecord[bytes, bytes]",
    time_ms: int,
    rows: Rows,
    clock: int,
) -> int:
    """Decide one run of an acceptable time; return the watermark after it."""
    at, window, mechanism = (record.partition, record.offset), config.window, config.spec.mechanism
    reports, good = mechanism.decode(rows)
    if not good.all():
        truth.reject(at, "range", int((~good).sum()))
    if not good.any():
        return clock
    start = time_ms // window.pane_ms * window.pane_ms
    closes_ms = start + window.pane_ms + window.grace_ms
    if clock >= closes_ms:
        truth.late[start] = truth.late.get(start, 0) + int(good.sum())
        truth.late_at.add(at)
        return clock
    if window.idle_ms is not None and record.timestamp + IDLE_SLACK_MS >= closes_ms:
        truth.ambiguous += int(good.sum())
    truth.n += int(good.sum())
    mechanism.accumulate(truth.panes.setdefault(start, mechanism.empty()), reports[good])
    return max(clock, time_ms)
