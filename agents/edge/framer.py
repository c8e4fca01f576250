"""Collects reports into frames, without clock or I/O."""

import numpy as np

from ldpstream.mechanisms.interface.mechanism import Reports
from ldpstream.mechanisms.wire.frame import HEAD_BYTES, MAX_RUNS, RUN_BYTES, Times
from ldpstream.mechanisms.wire.one_report import Tokens
from ldpstream.mechanisms.wire.spec import CollectionSpec


class Framer:
    """Collects reports of one collection into a frame of bounded size.

    A frame holds at most `max_reports` reports and `max_bytes` bytes. Its reports are sorted by cut
    time, then by content (`CollectionSpec.frame_reports`), so it hides in which order they came.

    Raises:
        ValueError: where not even one report fits.
    """

    def __init__(
        self, spec: CollectionSpec, *, max_reports: int = 1_000, max_bytes: int = 500_000
    ) -> None:
        if max_reports < 1 or max_bytes < self._bytes_of(spec, reports=1, times=1):
            raise ValueError("expected frames that hold at least one report")
        self._spec = spec
        self._max_reports = max_reports
        self._max_bytes = max_bytes
        self._clear()

    @staticmethod
    def _bytes_of(spec: CollectionSpec, *, reports: int, times: int) -> int:
        return HEAD_BYTES + RUN_BYTES * times + reports * spec.report_bytes

    def _clear(self) -> None:
        self._reports: list[Reports] = []
        self._times: list[Times] = []
        self._tokens: list[Tokens] = []
        self._cut: set[int] = set()
        self.count = 0
        """Number of waiting reports."""

    @property
    def full(self) -> bool:
        """Whether another report might not fit."""
        return not self._has_room(1, len(self._cut) + 1)

    def fits(self, times_ms: Times) -> bool:
        """Return whether reports with these times, `(n,)`, all fit."""
        return self._has_room(len(times_ms), len(self._cut.union(self._cut_times(times_ms))))

    def add(self, reports: Reports, times_ms: Times, tokens: Tokens | None = None) -> int:
        """Add the first reports that fit, with their times, both `(n, ...)`; return how many.

        `tokens`, uint8 `(n, 8)`, belong to the same partition in all calls.

        Raises:
            ValueError: where there is not one time for each report, or, where the collection has
                `one_report`, not one token.
        """
        if self._spec.one_report is not None:
            tokens = self._spec.one_report.check(tokens, len(reports))
            # Checked here: an error when the frame is made would lose all its reports.
            self._spec.one_report.check(np.concatenate((*self._tokens[:1], tokens)), None)
        if np.shape(times_ms) != np.shape(reports)[:1]:
            raise ValueError("expected one time for each report")
        cut = self._cut_times(times_ms[: self._max_reports - self.count])
        number, together = len(cut), self._cut.union(cut)
        if self._has_room(number, len(together)):
            self._cut = together
        else:
            number = self._add_one_by_one(cut)
        if number:
            self._reports.append(reports[:number])
            self._times.append(times_ms[:number])
            if tokens is not None:
                self._tokens.append(tokens[:number])
            self.count += number
        return number

    def _cut_times(self, times_ms: Times) -> list[int]:
        cut: list[int] = (times_ms - times_ms % self._spec.precision_ms).tolist()
        return cut

    def _add_one_by_one(self, cut: list[int]) -> int:
        """Add times while there is room; return how many."""
        for number, cut_ms in enumerate(cut):
            new = cut_ms not in self._cut
            if not self._has_room(number + 1, len(self._cut) + new):
                return number
            self._cut.add(cut_ms)
        return len(cut)

    def _has_room(self, more: int, times: int) -> bool:
        reports = self.count + more
        size = self._bytes_of(self._spec, reports=reports, times=times)
        return reports <= self._max_reports and times <= MAX_RUNS and size <= self._max_bytes

    def take(self) -> bytes | None:
        """Return the frame of all waiting reports, and start over; None if there are none."""
        if not self.count:
            return None
        reports, times = np.concatenate(self._reports), np.concatenate(self._times)
        tokens = np.concatenate(self._tokens) if self._tokens else None
        self._clear()
        return self._spec.frame_reports(reports, times_ms=times, tokens=tokens)
