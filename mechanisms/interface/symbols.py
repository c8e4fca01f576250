"""Mechanisms whose report is one symbol, and whose statistic counts the symbols.

A report is an integer in `0..outputs-1`, sent little-endian in the fewest whole bytes.
"""

from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import from_bytes, to_bytes
from ldpstream.mechanisms.interface.decoder import CountDecoder
from ldpstream.mechanisms.interface.mechanism import Mechanism, Reports, Statistic

_FEW: Final = 16


class SymbolMechanism(Mechanism):
    """Encoding and statistic shared by all mechanisms that report one symbol."""

    @property
    @abstractmethod
    def outputs(self) -> int:
        """Number of possible reports; reports are the integers `0..outputs-1`."""

    def possible_reports(self) -> Reports:
        return np.arange(self.outputs, dtype=np.int64)

    @cached_property
    def report_bytes(self) -> int:
        """Length of a report: the fewest whole bytes that hold every symbol, at least 1."""
        return -(-self.report_bits // 8)

    @property
    def report_bits(self) -> int:
        return max(1, (self.outputs - 1).bit_length())

    @cached_property
    def statistic_size(self) -> int:
        return self.outputs

    def encode(self, reports: Reports) -> NDArray[np.uint8]:
        return to_bytes(reports, self.report_bytes)

    def decode(self, payload: NDArray[np.uint8]) -> tuple[Reports, NDArray[np.bool_]]:
        """Decode uint8 `(n, report_bytes)` into `(reports, valid)`, each of shape `(n,)`.

        A symbol that does not exist becomes 0 and is not valid.
        """
        reports = from_bytes(payload)
        valid = reports < self.outputs
        if not valid.all():
            reports[~valid] = 0
        return reports, valid

    @abstractmethod
    def decoder(self) -> CountDecoder:
        """Return the decoder of linear queries."""

    def accumulate(self, statistic: Statistic, reports: Reports) -> None:
        statistic += np.bincount(reports, minlength=self.outputs)

    def sparse_counts(self, reports: Reports) -> Sequence[tuple[int, int]] | None:
        """Return each symbol of a few reports with its count; None for more reports."""
        if len(reports) > _FEW:
            return None
        return list(Counter(reports.tolist()).items())

    def count(self, statistic: Statistic) -> int:
        return int(statistic.sum())

    def accumulate_times(
        self, statistic: Statistic, reports: Reports, times: NDArray[np.int64]
    ) -> None:
        np.add.at(statistic, reports, times)
