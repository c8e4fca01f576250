"""What a ledger was opened with: collections and their windows, the budget, and its periods."""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from operator import index

from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.base.times import EARLIEST_MS, LATEST_MS, look_like_seconds
from ldpstream.mechanisms.ledger.errors import BudgetError, LedgerError
from ldpstream.mechanisms.ledger.spent import read_budget
from ldpstream.mechanisms.ledger.store import Known, LedgerStore
from ldpstream.mechanisms.policies.policy import Policy
from ldpstream.mechanisms.policies.spending import SumPolicy, first_beyond, largest_loss
from ldpstream.mechanisms.wire.spec import CollectionSpec

MAX_COMPARED_VALUES = 256
"""Budgets of pairs are compared pair by pair before every report."""

Budget = Policy | Fraction | int | float | str


def whole_ms(time_ms: int) -> int:
    """Return a time as an int: SQLite keeps numpy's integers as bytes, which equal no number.

    Raises:
        ValueError: for anything but whole milliseconds of the years 1 to 9999, and for what looks
            like seconds.
    """
    try:
        whole = index(time_ms)
    except TypeError:
        whole = LATEST_MS + 1
    if not EARLIEST_MS <= whole <= LATEST_MS:
        raise ValueError("expected a time in whole milliseconds since the epoch, years 1 to 9999")
    if look_like_seconds(whole):
        raise ValueError("expected a time in milliseconds since the epoch: this looks like seconds")
    return whole


class Terms:
    """The collections that may report, by fingerprint, and what they may spend together.

    Raises:
        LedgerError: where a window does not divide the horizon, or is not that of `one_report`.
        SpecError: for a budget that is no finite number above 0, or of the wrong values.
        TypeError: for a length that is no whole number.
    """

    def __init__(
        self,
        specs: Iterable[tuple[CollectionSpec, int]],
        budget: Budget,
        horizon_ms: int | None,
    ) -> None:
        self.specs: Mapping[bytes, tuple[CollectionSpec, int]] = {
            spec.fingerprint: (spec, index(window_ms)) for spec, window_ms in specs
        }
        self._horizon_ms = None if horizon_ms is None else index(horizon_ms)
        self._budget = self._read_budget(budget)
        for spec, window_ms in self.specs.values():
            if window_ms < 1 or not self._divides(window_ms):
                raise LedgerError(
                    f"{spec.name}: expected windows that divide the horizon of {horizon_ms} ms, "
                    f"got {window_ms} ms"
                )
            if spec.one_report is not None and window_ms != spec.one_report.window_ms:
                raise LedgerError(
                    f"{spec.name}: expected windows of {spec.one_report.window_ms} ms, as its "
                    f"one_report has them, got {window_ms} ms"
                )
        self._losses = {
            fingerprint: largest_loss(spec.mechanism.policy)
            for fingerprint, (spec, _) in self.specs.items()
        }

    def _divides(self, window_ms: int) -> bool:
        horizon_ms = self._horizon_ms
        return horizon_ms is None or (horizon_ms > 0 and horizon_ms % window_ms == 0)

    def _read_budget(self, given: Budget) -> Policy | Fraction:
        if not isinstance(given, Policy):
            return read_budget(given)
        sizes = {spec.mechanism.policy.size for spec, _ in self.specs.values()}
        domains = {str(spec.domain.canonical()) for spec, _ in self.specs.values()}
        if sizes != {given.size} or len(domains) > 1 or given.size > MAX_COMPARED_VALUES:
            raise SpecError(
                "budget",
                f"a number, or a policy of at most {MAX_COMPARED_VALUES} values, those of all "
                f"collections; got one of {given.size}",
            )
        return given

    def check_known(self, store: LedgerStore) -> dict[bytes, Known]:
        """Return the specs of a file, whose reports can be added up under these terms.

        Raises:
            LedgerError: as `Ledger`.
        """
        path, known = store.path, store.specs()
        for fingerprint, one in known.items():
            if fingerprint not in self.specs:
                if isinstance(self._budget, Policy):
                    raise LedgerError(
                        f"{path}: expected the spec {fingerprint.hex()} of {one.name} among the "
                        "collections, because the file holds reports of it"
                    )
            elif self.specs[fingerprint][1] != one.window_ms:
                raise LedgerError(
                    f"{path}: expected windows of {one.window_ms} ms for {one.name}, as before, "
                    f"got {self.specs[fingerprint][1]} ms"
                )
        return known

    def window_ms(self, spec: CollectionSpec) -> int:
        """Return the length of a collection's windows.

        Raises:
            LedgerError: for one that is not among them.
        """
        if spec.fingerprint not in self.specs:
            raise LedgerError(f"{spec.name}: expected a collection that the ledger was opened with")
        return self.specs[spec.fingerprint][1]

    def period(self, time_ms: int | None) -> tuple[int, int] | None:
        """Return the period `[start, end)` of a time; None for one that has no end."""
        if time_ms is None or self._horizon_ms is None:
            return None
        start_ms = whole_ms(time_ms)
        start_ms -= start_ms % self._horizon_ms
        return start_ms, start_ms + self._horizon_ms

    def sum(
        self, store: LedgerStore, span: tuple[int, int] | None, *, fresh: bytes | None = None
    ) -> SumPolicy:
        """Return what the reports of a span have spent, and one more of the spec `fresh`."""
        return SumPolicy(
            tuple(
                (
                    spec.mechanism.policy,
                    store.count(fingerprint, span, window_ms=window_ms) + (fingerprint == fresh),
                )
                for fingerprint, (spec, window_ms) in self.specs.items()
            )
        )

    def charge(self, store: LedgerStore, spec: CollectionSpec, start_ms: int) -> None:
        """Let a report be added for a window; remember the spec at its first one.

        Raises:
            BudgetError: where it goes beyond the budget.
            LedgerError: as `check_known`: others may have used the file since it was opened.
        """
        span, known = self.period(start_ms), self.check_known(store)
        asked = self._losses[spec.fingerprint]
        charged = (
            store.count(fingerprint, span, window_ms=one.window_ms) * one.loss
            for fingerprint, one in known.items()
        )
        spent = sum(charged, Fraction(0))
        if isinstance(self._budget, Policy):
            if (
                first_beyond(self.sum(store, span, fresh=spec.fingerprint), self._budget)
                is not None
            ):
                raise BudgetError(spec.name, spent=spent, asked=asked, allowed=None)
        elif spent + asked > self._budget:
            raise BudgetError(spec.name, spent=spent, asked=asked, allowed=self._budget)
        if spec.fingerprint not in known:
            store.add_spec(Known(spec.fingerprint, spec.name, self.window_ms(spec), asked))
