"""The terms of a ledger: its collections and their windows, its budget, and its periods."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from operator import index
from typing import Final

from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.base.times import EARLIEST_MS, LATEST_MS, format_time, resemble_seconds
from ldpstream.mechanisms.ledger.errors import BudgetError, LedgerError
from ldpstream.mechanisms.ledger.spent import read_budget
from ldpstream.mechanisms.ledger.spread import MAX_SPREAD_WINDOWS, Spread, shared_out
from ldpstream.mechanisms.ledger.store import Known, LedgerStore
from ldpstream.mechanisms.wire.spec import CollectionSpec

_LONGEST_MS: Final = (1 << 53) - 1
"""As in JavaScript, whose numbers are exact so far."""


@dataclass(frozen=True)
class Share:
    """The number of a period's windows in which a collection takes part: `reports` of `windows`.

    `start_ms` is the start of the period, None if all periods have the same windows.
    """

    start_ms: int | None
    windows: int
    reports: int

    def place(self, start_ms: int, window_ms: int) -> int:
        """Return the number, within its period, of the window that starts at a time."""
        return (start_ms // window_ms) % self.windows


def _is_length(time_ms: int) -> bool:
    return 1 <= time_ms <= _LONGEST_MS


def whole_ms(time_ms: int) -> int:
    """Return a time as an int, because SQLite stores numpy's integers as bytes.

    Raises:
        ValueError: if it is not in whole milliseconds within the years 1 to 9999, or looks like
            seconds.
    """
    try:
        whole = index(time_ms)
    except TypeError:
        whole = LATEST_MS + 1
    if not EARLIEST_MS <= whole <= LATEST_MS:
        raise ValueError("expected a time in whole milliseconds since the epoch, years 1 to 9999")
    if resemble_seconds(whole):
        raise ValueError("expected a time in milliseconds since the epoch: this looks like seconds")
    return whole


class Terms:
    """The collections that may report, by fingerprint, and what they may spend together."""

    def __init__(
        self,
        specs: Iterable[tuple[CollectionSpec, int]],
        budget: Fraction | float | str,
        horizon_ms: int | None,
        spread: Spread | None = None,
    ) -> None:
        self.specs: Mapping[bytes, tuple[CollectionSpec, int]] = {
            spec.fingerprint: (spec, index(window_ms)) for spec, window_ms in specs
        }
        self._horizon_ms = None if horizon_ms is None else index(horizon_ms)
        self._limit = read_budget(budget)
        if horizon_ms is not None and not _is_length(horizon_ms):
            raise LedgerError(
                f"horizon_ms: expected milliseconds from 1 to {_LONGEST_MS:,}, got {horizon_ms:,}"
            )
        for spec, window_ms in self.specs.values():
            if not _is_length(window_ms):
                raise LedgerError(
                    f"{spec.name}: expected windows of 1 to {_LONGEST_MS:,} ms, "
                    f"got {window_ms:,} ms"
                )
            if (horizon_ms or 0) % window_ms:
                raise LedgerError(
                    f"{spec.name}: expected windows that divide the horizon of {horizon_ms} ms, "
                    f"got {window_ms} ms"
                )
            if spec.one_report is not None and window_ms != spec.one_report.window_ms:
                raise LedgerError(
                    f"{spec.name}: expected windows of {spec.one_report.window_ms} ms, as its "
                    f"one_report has them, got {window_ms} ms"
                )
            if spec.words is not None and (spread or horizon_ms is not None):
                raise LedgerError(
                    f"{spec.name}: expected a budget for ever, without horizon and spread: a "
                    "device takes part in one round of a run, and what all runs spend adds up"
                )
        self._losses = {
            fingerprint: spec.charged.largest_loss()
            for fingerprint, (spec, _) in self.specs.items()
        }
        self._spread = spread
        self._reports = {} if spread is None else self._shared_out()

    def check_budget(self) -> None:
        """Refuse a budget below one report: a new ledger could never send anything.

        A ledger with reports may have such a budget, since repeating them costs nothing.
        """
        if self._reports is None:
            raise _too_little_to_spread()
        for fingerprint, loss in self._losses.items():
            if loss > self._limit:
                name = self.specs[fingerprint][0].name
                what = f"at least {loss}, which one report of {name} loses, got {self._limit}"
                raise SpecError("budget", what)

    def _shared_out(self) -> Mapping[bytes, int] | None:
        horizon_ms = self._horizon_ms
        if horizon_ms is None:
            raise LedgerError(
                "spread: expected a horizon with it: a budget for ever has no windows"
            )
        for spec, _ in self.specs.values():
            if spec.hold is not None:
                raise LedgerError(
                    f"{spec.name}: expected no spread with hold, whose reports of an epoch cost no "
                    "more than one: it reports in every window"
                )
        windows_ms = {fingerprint: window_ms for fingerprint, (_, window_ms) in self.specs.items()}
        if any(horizon_ms // window_ms > MAX_SPREAD_WINDOWS for window_ms in windows_ms.values()):
            raise LedgerError(
                f"spread: expected a horizon of at most {MAX_SPREAD_WINDOWS:,} windows"
            )
        return shared_out(
            windows_ms, horizon_ms, lambda counts: _total(counts, self._losses) <= self._limit
        )

    def check_known(self, store: LedgerStore) -> dict[bytes, Known]:
        """Return the specs of a file, after checking that these terms can add up its reports."""
        path, known = store.path, store.specs()
        for fingerprint, entry in known.items():
            if fingerprint in self.specs and self.specs[fingerprint][1] != entry.window_ms:
                raise LedgerError(
                    f"{path}: expected windows of {entry.window_ms} ms for {entry.name}, as "
                    f"before, got {self.specs[fingerprint][1]} ms"
                )
        return known

    def window_ms(self, spec: CollectionSpec) -> int:
        """Return the length of a collection's windows."""
        if spec.fingerprint not in self.specs:
            raise LedgerError(f"{spec.name}: expected a collection that the ledger was opened with")
        return self.specs[spec.fingerprint][1]

    def period(self, time_ms: int | None) -> tuple[int, int] | None:
        """Return the period `[start, end)` of a time, or None if periods have no end."""
        if time_ms is None or self._horizon_ms is None:
            return None
        start_ms = whole_ms(time_ms)
        start_ms -= start_ms % self._horizon_ms
        return start_ms, start_ms + self._horizon_ms

    def share(self, spec: CollectionSpec, start_ms: int) -> Share | None:
        """Return in how many of a period's windows a device takes part; None for all of them.

        In the discovery of words this is one round of a run, which is the period.
        """
        horizon_ms, window_ms = self._horizon_ms, self.window_ms(spec)
        if spec.words is not None:
            run_ms = spec.words.rounds * window_ms
            return Share(start_ms - start_ms % run_ms, spec.words.rounds, 1)
        if self._spread is None or horizon_ms is None:
            return None
        if self._reports is None:
            raise _too_little_to_spread()
        first_ms = None if self._spread == "rolling" else start_ms - start_ms % horizon_ms
        return Share(first_ms, horizon_ms // window_ms, self._reports[spec.fingerprint])

    def charge(self, store: LedgerStore, spec: CollectionSpec, start_ms: int) -> None:
        """Charge a report of a window, and store the spec with its first report.

        With `hold`, the first report of an epoch in a period is charged for all of them.

        Raises:
            BudgetError: if the report exceeds the budget.
            LedgerError: as for `check_known`, since other processes may have changed the file, and
                if the window is not that of the round.
        """
        known = self.check_known(store)
        self._check_round(spec, start_ms)
        if self._is_charged(store, spec, start_ms):
            return
        losses = {
            fingerprint: known_spec.loss for fingerprint, known_spec in known.items()
        } | self._losses
        loss = losses[spec.fingerprint]
        for before in self._stretches(store, known, start_ms):
            spent = _total(before, losses)
            if spent + loss > self._limit:
                period = None if self._spread == "rolling" else self.period(start_ms)
                raise BudgetError(
                    spec.name,
                    spent=spent,
                    asked=loss,
                    allowed=self._limit,
                    horizon_ms=self._horizon_ms,
                    next_ms=None if period is None else period[1],
                )
        if spec.fingerprint not in known:
            store.add_spec(Known(spec.fingerprint, spec.name, self.window_ms(spec), loss))

    def _check_round(self, spec: CollectionSpec, start_ms: int) -> None:
        """Refuse a window other than that of the spec's round."""
        current = None if spec.words is None else spec.words.round
        window = start_ms, start_ms + self.window_ms(spec)
        if current is not None and (current.start_ms, current.end_ms) != window:
            raise LedgerError(
                f"{spec.name}: expected a time in the window of round {current.number}, from "
                f"{format_time(current.start_ms)} to {format_time(current.end_ms)}"
            )

    def _is_charged(self, store: LedgerStore, spec: CollectionSpec, start_ms: int) -> bool:
        """Return whether another report of the window's epoch has been charged to its period."""
        epoch = None if spec.hold is None else store.epoch(spec.fingerprint, start_ms)
        if epoch is None:
            return False
        span, window_ms = self.period(start_ms), self.window_ms(spec)
        charged = store.charged(spec.fingerprint, span, window_ms=window_ms)
        return any(window.start_ms == epoch.start_ms for window in charged)

    def _stretches(
        self, store: LedgerStore, known: Mapping[bytes, Known], start_ms: int
    ) -> Iterator[Counter[bytes]]:
        """Yield, for each time span in which a new report counts, the charges of each spec.

        The only span is the report's period, unless the spread is rolling. Then it is every span as
        long as a period that holds the start of the report's window, with all charges, also those
        under another spread or another secret.
        """
        horizon_ms = self._horizon_ms
        if self._spread != "rolling" or horizon_ms is None:
            span = self.period(start_ms)
            yield Counter(
                {
                    fingerprint: store.count(
                        fingerprint, span, window_ms=known[fingerprint].window_ms
                    )
                    for fingerprint in known
                }
            )
            return
        span = start_ms - horizon_ms + 1, start_ms + horizon_ms
        charged = [
            (start, fingerprint, row.window_ms if horizon_ms % row.window_ms else 1)
            for fingerprint, row in known.items()
            # Longer windows, of an earlier configuration, count in all spans that they overlap.
            for start in store.starts(
                fingerprint, span, window_ms=row.window_ms if horizon_ms % row.window_ms else 1
            )
        ]
        firsts = {start for start, *_ in charged if span[0] <= start < start_ms}
        for first in {span[0], start_ms, *firsts}:
            yield Counter(
                fingerprint
                for start, fingerprint, length in charged
                if start < first + horizon_ms and start + length > first
            )


def _too_little_to_spread() -> LedgerError:
    what = "a budget of at least one report of each collection in a period"
    return LedgerError(f"spread: expected {what}")


def _total(counts: Mapping[bytes, int], losses: Mapping[bytes, Fraction]) -> Fraction:
    """Return what these numbers of reports of each spec lose together."""
    return sum((n * losses[fingerprint] for fingerprint, n in counts.items()), Fraction(0))
