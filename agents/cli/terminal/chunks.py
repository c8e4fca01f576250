"""Reports in the order of the input's lines, and the frames that hold them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np

from ldpstream.agents.broker.record_time import now_ms
from ldpstream.agents.cli.terminal.errors import Failed, Refused
from ldpstream.agents.cli.terminal.ledgers import releases
from ldpstream.agents.cli.terminal.reports import read_reports
from ldpstream.agents.cli.terminal.value_options import Reading
from ldpstream.agents.cli.terminal.values import read_values
from ldpstream.agents.config import CollectionConfig
from ldpstream.mechanisms.base.arrays import Integers
from ldpstream.mechanisms.interface.mechanism import Reports
from ldpstream.mechanisms.ledger import Ledger, Release
from ldpstream.mechanisms.wire.one_report import Tokens
from ldpstream.mechanisms.wire.spec import CollectionSpec


@dataclass(frozen=True, eq=False)
class Chunk:
    """n reports with their times in epoch milliseconds, and tokens where `one_report` is set."""

    reports: Reports
    times_ms: Integers
    tokens: Tokens | None = None


class Kept:
    """The reports of a ledger that are not acknowledged yet, one per window."""

    def __init__(
        self,
        ledger: Ledger,
        collection: CollectionConfig,
        stream: BinaryIO,
        reading: Reading,
        *,
        size: int,
    ) -> None:
        self._ledger = ledger
        self._spec = collection.spec
        self._releases = releases(ledger, collection, stream, reading)
        self._size = size
        self._starts: dict[int, None] = {}

    def chunks(self) -> Iterator[Chunk]:
        """Yield the reports; those before a refused line come before the refusal is raised."""
        waiting: list[Release] = []
        try:
            for release in self._releases:
                if not release.sent and release.start_ms not in self._starts:
                    self._starts[release.start_ms] = None
                    waiting.append(release)
                if len(waiting) == self._size:
                    yield self._chunk(waiting)
                    waiting = []
        except (Refused, Failed):
            if waiting:
                yield self._chunk(waiting)
            raise
        if waiting:
            yield self._chunk(waiting)

    def _chunk(self, waiting: Sequence[Release]) -> Chunk:
        payload = np.concatenate([release.payload for release in waiting])
        reports, _ = self._spec.mechanism.decode(payload)
        times_ms = np.array([release.time_ms for release in waiting])
        if self._spec.one_report is None:
            return Chunk(reports, times_ms)
        return Chunk(reports, times_ms, self._spec.tokens(self._ledger.secret, times_ms))

    def mark_sent(self) -> None:
        """Record in the ledger that all yielded reports have arrived."""
        self._ledger.mark_sent(self._spec, self._starts)


def from_values(
    stream: BinaryIO, collection: CollectionConfig, reading: Reading, *, size: int
) -> Iterator[Chunk]:
    """Draw and yield the reports of value lines.

    Raises:
        Refused: as `read_values`.
    """
    spec = collection.spec
    for values in read_values(stream, spec.domain, reading, chunk=size):
        reports = spec.mechanism.privatize(values.indices)
        yield Chunk(reports, _or_now(values.times_ms, len(reports)))


def from_reports(
    stream: BinaryIO, collection: CollectionConfig, reading: Reading, *, size: int
) -> Iterator[Chunk]:
    """Yield the reports that `privatize` wrote.

    Raises:
        Refused: as `read_reports`; and where `times` were asked for and are missing.
    """
    for lines in read_reports(stream, collection.spec, chunk=size, near=reading.near):
        if reading.times and lines.times_ms is None:
            raise Refused("--times: expected reports with times, as privatize --times writes them")
        yield Chunk(lines.reports, _or_now(lines.times_ms, len(lines.reports)))


def _or_now(times_ms: Integers | None, n: int) -> Integers:
    if times_ms is not None:
        return times_ms
    return np.full(n, now_ms(), dtype=np.int64)


def frames(
    spec: CollectionSpec, chunk: Chunk, batch: int
) -> Iterator[tuple[bytes, int, int | None]]:
    """Yield frames, their numbers of reports, and the partition where tokens determine it.

    A frame holds at most `batch` reports.
    """
    if spec.one_report is not None and chunk.tokens is not None:
        for at in spec.one_report.by_partition(chunk.tokens):
            partition = int(spec.one_report.partition(chunk.tokens[at[:1]])[0])
            for start in range(0, len(at), batch):
                part = at[start : start + batch]
                times_ms, tokens = chunk.times_ms[part], chunk.tokens[part]
                frame = spec.frame_reports(chunk.reports[part], times_ms=times_ms, tokens=tokens)
                yield frame, len(part), partition
        return
    for start in range(0, len(chunk.reports), batch):
        rows = slice(start, start + batch)
        reports = chunk.reports[rows]
        yield spec.frame_reports(reports, times_ms=chunk.times_ms[rows]), len(reports), None
