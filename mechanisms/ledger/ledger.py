"""The budget ledger of one person's device: what has been reported, and what it has spent.

It draws one report a window, stores it, and returns that one to every later call, which therefore
leaks nothing more. It adds up exact losses and refuses reports beyond the budget. docs/devices.md
says what this protects and what it does not.
"""

import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.exact.entropy import Entropy, SystemEntropy
from ldpstream.mechanisms.interface.mechanism import Mechanism, Reports
from ldpstream.mechanisms.ledger.errors import BudgetError, LedgerError, SkippedError
from ldpstream.mechanisms.ledger.spent import Spent, WindowSpent, read_spent
from ldpstream.mechanisms.ledger.spread import Spread, drawn_windows
from ldpstream.mechanisms.ledger.store import DrawnKey, Epoch, LedgerStore
from ldpstream.mechanisms.ledger.terms import Budget, Share, Terms, whole_ms
from ldpstream.mechanisms.policies.spending import SumPolicy
from ldpstream.mechanisms.wire.hold import Hold
from ldpstream.mechanisms.wire.one_report import SECRET_BYTES
from ldpstream.mechanisms.wire.spec import CollectionSpec

__all__ = [
    "BudgetError",
    "Ledger",
    "LedgerError",
    "Release",
    "SkippedError",
    "Spent",
    "WindowSpent",
]


@dataclass(frozen=True, eq=False)
class Release:
    """A report that may leave the device: uint8 `(1, report_bytes)`, and its cut time.

    `fresh` says that it was drawn now, `sent` that it was marked as arrived.
    """

    payload: NDArray[np.uint8]
    time_ms: int
    start_ms: int
    fresh: bool
    sent: bool


class Ledger:
    """One person's ledger in a file; several processes may share it.

    `budget` is what all reports of a period may lose together: a number (for any pair of values of
    any collection; read as the decimal that was written), or a policy over the values of at most
    256 that all given collections share, budget by budget. `horizon_ms` is the length of a period,
    periods beginning at multiples of it since the epoch, or None for a single period without end.
    `specs` are the collections that may report, each with the length of its windows in
    milliseconds.

    With `spread` the ledger takes part in some windows of each period only, as many as the budget
    allows, drawn from its secret (`takes_part`); without, it spends the budget in the first ones.
    True draws for each period; `"rolling"` draws once, so that any stretch as long as a period, not
    only those that begin with one, keeps the budget.

    Where a collection has `hold`, the first report of an epoch draws its permanent report, which
    is on disk from then on until it is forgotten, and those of its windows follow from that alone.
    A period is charged for an epoch once, with the budget of the permanent draw.

    Raises:
        LedgerError: where the file is there but is not a whole ledger (an empty one is none),
            cannot be used, holds reports of a spec that is not among `specs` but would have to be
            compared pair by pair, or windows of another length; where a window does not divide the
            horizon, or is not that of `one_report`; with `spread` where there is no horizon, one of
            more than a million windows, a collection with `hold`, or a budget below one report of
            each collection.
        SpecError: for a budget that is not a finite number above 0, or of the wrong values.
        TypeError: for a length that is not a whole number.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        specs: Iterable[tuple[CollectionSpec, int]],
        budget: Budget,
        horizon_ms: int | None = None,
        spread: bool | Literal["rolling"] = False,
    ) -> None:
        kind = _read_spread(spread)
        self._terms = Terms(specs, budget, horizon_ms, kind)
        self._drawn: dict[DrawnKey, frozenset[int]] = {}
        self._store = LedgerStore(Path(path))
        try:
            with self._store.reading():
                self._terms.check_known(self._store)
        except BaseException:
            self._store.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._store.close()

    @cached_property
    def secret(self) -> bytes:
        """The secret of the device's tokens: random bytes, on disk before anybody has seen them."""
        with self._store.writing():
            return self._store.secret(secrets.token_bytes(SECRET_BYTES))

    def takes_part(self, spec: CollectionSpec, *, time_ms: int) -> bool:
        """Return whether the window that holds a time is one of the device's: without `spread` all.

        What was drawn for a period is on disk before this returns, and final. A window in which
        the device takes part but does not report is lost, not made up for.

        Raises:
            LedgerError: for a spec that is not the ledger's, and a file that cannot be used.
            ValueError: for a time that is not in whole milliseconds, of the years 1 to 9999.
        """
        _, start_ms = self._window(spec, time_ms)
        share = self._terms.share(spec, start_ms)
        return share is None or self._is_drawn(spec, share, start_ms)

    def _is_drawn(self, spec: CollectionSpec, share: Share, start_ms: int) -> bool:
        period = "rolling" if share.start_ms is None else str(share.start_ms)
        key = spec.fingerprint, period, share.windows, share.reports
        if key not in self._drawn:
            with self._store.writing():
                numbers = self._store.drawn(key)
                if numbers is None:
                    secret = self._store.secret(secrets.token_bytes(SECRET_BYTES))
                    numbers = drawn_windows(
                        secret,
                        spec.fingerprint,
                        share.start_ms,
                        windows=share.windows,
                        reports=share.reports,
                    )
                    self._store.add_drawn(key, numbers)
            self._drawn[key] = numbers
        return share.place(start_ms, self._terms.window_ms(spec)) in self._drawn[key]

    def release(
        self, spec: CollectionSpec, label: Any, *, time_ms: int, entropy: Entropy | None = None
    ) -> Release:
        """Return the report of the window that holds a time: a fresh one, or the one it has.

        The first report of a window stands, whatever label is given later, and so does its time. A
        fresh one is on disk, and charged, before it is returned. With `hold` the first label of an
        epoch stands for all its windows.

        Raises:
            SkippedError: where the ledger spreads its budget, and this window is not the device's.
            BudgetError: where a fresh report would spend more than the period has left.
            LedgerError: for a spec that is not the ledger's, a window whose report has been
                forgotten, a file that cannot be used, and one that others have meanwhile used in a
                way that would have been refused above.
            ValueOutsideDomainError: for a bad label, without it.
            ValueError: for a time that is not in whole milliseconds, of the years 1 to 9999.
        """
        spec.domain.check([label])
        source = entropy or SystemEntropy()

        def draw(mechanism: Mechanism) -> Reports:
            return mechanism.randomise(spec.domain.place([label], entropy=source), source)

        return self._release(spec, time_ms, draw, source)

    def release_index(
        self, spec: CollectionSpec, index: int, *, time_ms: int, entropy: Entropy | None = None
    ) -> Release:
        """Do the same for a value by its number in `0..k-1`."""
        values = spec.mechanism.check_values(np.array([index]))
        source = entropy or SystemEntropy()
        return self._release(spec, time_ms, lambda one: one.randomise(values, source), source)

    def _release(
        self,
        spec: CollectionSpec,
        time_ms: int,
        draw: Callable[[Mechanism], Reports],
        entropy: Entropy,
    ) -> Release:
        cut_ms, start_ms = self._window(spec, time_ms)
        with self._store.reading():
            kept = self._kept(spec, start_ms)
        if kept is not None:
            return kept
        share = self._terms.share(spec, start_ms)
        if share is not None and not self._is_drawn(spec, share, start_ms):
            raise SkippedError(spec.name, reports=share.reports, windows=share.windows)
        with self._store.writing():
            # Another process may have come first.
            kept = self._kept(spec, start_ms)
            if kept is not None:
                return kept
            self._terms.charge(self._store, spec, start_ms)
            if spec.hold is None:
                payload = spec.mechanism.encode(draw(spec.mechanism))
            else:
                payload = spec.hold.sent(self._permanent(spec, spec.hold, start_ms, draw), entropy)
            self._store.add(spec.fingerprint, start_ms, cut_ms, payload.tobytes())
        return Release(payload, cut_ms, start_ms, fresh=True, sent=False)

    def _permanent(
        self,
        spec: CollectionSpec,
        hold: Hold,
        start_ms: int,
        draw: Callable[[Mechanism], Reports],
    ) -> NDArray[np.uint8]:
        """Return the permanent report of a window's epoch, uint8 `(1, B)`: kept, or drawn now."""
        epoch = self._store.epoch(spec.fingerprint, start_ms)
        if epoch is None:
            secret = self._store.secret(secrets.token_bytes(SECRET_BYTES))
            window_ms = self._terms.window_ms(spec)
            span = hold.epoch(secret, spec.fingerprint, start_ms=start_ms, window_ms=window_ms)
            epoch = Epoch(*span, hold.permanent.encode(draw(hold.permanent)).tobytes())
            self._store.add_epoch(spec.fingerprint, epoch)
        if epoch.report is None:
            raise _forgotten(spec)
        return np.frombuffer(epoch.report, dtype=np.uint8).reshape(1, -1)

    def _window(self, spec: CollectionSpec, time_ms: int) -> tuple[int, int]:
        """Return the cut time, and the start of its window: there the report is counted."""
        window_ms, time_ms = self._terms.window_ms(spec), whole_ms(time_ms)
        cut_ms = time_ms - time_ms % spec.precision_ms
        return cut_ms, cut_ms - cut_ms % window_ms

    def _kept(self, spec: CollectionSpec, start_ms: int) -> Release | None:
        row = self._store.find(spec.fingerprint, start_ms)
        if row is None:
            return None
        if row.report is None:
            raise _forgotten(spec)
        payload = np.frombuffer(row.report, dtype=np.uint8).reshape(1, -1)
        return Release(payload, row.time_ms, start_ms, fresh=False, sent=row.sent)

    def mark_sent(self, spec: CollectionSpec, starts_ms: Iterable[int]) -> None:
        """Record that the reports of these windows have arrived and need not be sent again."""
        with self._store.writing():
            for start_ms in starts_ms:
                self._store.mark_sent(spec.fingerprint, whole_ms(start_ms))

    def forget(self, spec: CollectionSpec, *, before_ms: int) -> int:
        """Drop the reports of windows that have ended by then; return how many.

        Their charges stay, and so does the refusal of a second report.
        """
        window_ms = self._terms.window_ms(spec)
        before_ms = whole_ms(before_ms) - window_ms + 1
        with self._store.writing():
            return self._store.forget(spec.fingerprint, before_ms, window_ms=window_ms)

    def spent(self, *, time_ms: int | None = None) -> Spent:
        """Return what the period that holds a time has spent, or what was spent in all."""
        span = self._terms.period(time_ms)
        with self._store.reading():
            return read_spent(self._store, span)

    def spent_policy(self, *, time_ms: int | None = None) -> SumPolicy:
        """Return what a period, or all time, has spent for each pair of values, exactly.

        Of collections over the same values: the sum of their policies.

        Raises:
            SpecError: where the collections have different numbers of values.
            LedgerError: where the file holds reports of other specs.
        """
        span = self._terms.period(time_ms)
        with self._store.reading():
            strangers = self._store.specs().keys() - self._terms.specs.keys()
            if strangers:
                raise LedgerError(f"expected the spec {min(strangers).hex()} among the collections")
            return self._terms.sum(self._store, span)


def _forgotten(spec: CollectionSpec) -> LedgerError:
    return LedgerError(
        f"{spec.name}: expected a window after those that were forgotten, got one that has had "
        "its report"
    )


def _read_spread(given: bool | str) -> Spread | None:
    if given not in (True, False, "rolling"):
        raise LedgerError('spread: expected True, False or "rolling"')
    return "rolling" if given == "rolling" else "fresh" if given else None
