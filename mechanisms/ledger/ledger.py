"""The budget ledger of one person's device: what has been reported, and what that has spent.

It draws one report for each window, stores it, and returns the same report to every later call, so
that repeated calls leak nothing more. It adds up exact losses and refuses reports beyond the
budget. docs/how-to/devices.md says what this protects and what it does not.
"""

import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.exact.entropy import Entropy, SystemEntropy
from ldpstream.mechanisms.interface.mechanism import Mechanism, Reports
from ldpstream.mechanisms.ledger.errors import LedgerError, SkippedError
from ldpstream.mechanisms.ledger.spent import Spent, read_spent
from ldpstream.mechanisms.ledger.spread import Spread, drawn_windows
from ldpstream.mechanisms.ledger.store import DrawnKey, Epoch, LedgerStore
from ldpstream.mechanisms.ledger.terms import Share, Terms, whole_ms
from ldpstream.mechanisms.wire.hold import Hold
from ldpstream.mechanisms.wire.one_report import SECRET_BYTES
from ldpstream.mechanisms.wire.spec import CollectionSpec


@dataclass(frozen=True, eq=False)
class Release:
    """A report that may leave the device: `payload`, uint8 `(1, report_bytes)`, and its cut time.

    `fresh` says that it was drawn by this call, `sent` that it was marked as sent.
    """

    payload: NDArray[np.uint8]
    time_ms: int
    start_ms: int
    fresh: bool
    sent: bool


class Ledger:
    """One person's ledger in a file, which several processes may share.

    `budget` limits what all reports of a period lose together, for any pair of values of any
    collection; it is read as the decimal that was written. `horizon_ms` is the length of a period,
    in milliseconds; periods begin at multiples of it since the epoch. None is a single period
    without end. `specs` are the collections that may report, each with the length of its windows in
    milliseconds.

    Without `spread`, the budget is spent in the first windows of each period. With it, the ledger
    takes part in as many windows as the budget allows, drawn from its secret (`takes_part`). True
    draws for each period. `"rolling"` draws once, so that as many windows in a row as a period has
    keep the budget, wherever they begin. A time as long as a period may touch one window more.

    In a collection with `hold`, the first report of an epoch draws a permanent report, which stays
    on disk until it is forgotten, and the reports of the epoch's windows follow from it alone. A
    period is charged once for an epoch, with the budget of the permanent draw.

    Raises:
        LedgerError: if the file exists but is not a whole ledger (an empty file is not one), cannot
            be used, or holds windows of another length; if a window does not divide the horizon or
            is not that of `one_report`; with `spread`, if there is no horizon, a horizon of more
            than a million windows, or a collection with `hold`; with `spread`, in a ledger without
            reports, a budget below one report for each collection.
        SpecError: if the budget is not a finite number above 0, or, in a ledger without reports,
            too small for one report of a collection. With reports, it repeats them and no more.
        TypeError: if a length is not an integer.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        specs: Iterable[tuple[CollectionSpec, int]],
        budget: Fraction | float | str,
        horizon_ms: int | None = None,
        spread: bool | Literal["rolling"] = False,
    ) -> None:
        kind = _read_spread(spread)
        self._terms = Terms(specs, budget, horizon_ms, kind)
        self._drawn: dict[DrawnKey, frozenset[int]] = {}
        if not Path(path).exists():
            # Before the file is created: a refused ledger leaves none.
            self._terms.check_budget()
        self._store = LedgerStore(Path(path))
        try:
            with self._store.reading():
                if not self._terms.check_known(self._store):
                    self._terms.check_budget()
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
        """The secret of the device's tokens: random bytes, written to disk before they are used."""
        with self._store.writing():
            return self._store.secret(secrets.token_bytes(SECRET_BYTES))

    def takes_part(self, spec: CollectionSpec, *, time_ms: int) -> bool:
        """Return whether the device takes part in the window of a time; always without `spread`.

        The draw for a period is on disk before this returns, and final. A window in which the
        device takes part but does not report is lost and not made up for.

        Raises:
            LedgerError: if the ledger was not opened with this spec, the file cannot be used, or
                the budget is below one report for each collection.
            ValueError: if the time is not in whole milliseconds within the years 1 to 9999.
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
        """Return the report of the window of a time: the stored one, or a fresh one.

        The first report of a window and its time are final, whatever label is given later. A fresh
        report is charged and on disk before it is returned. With `hold`, the first label of an
        epoch applies to all its windows.

        Raises:
            SkippedError: if the ledger spreads its budget and does not take part in this window.
            BudgetError: if a fresh report would spend more than the period has left.
            LedgerError: if the ledger was not opened with this spec, the report of the window has
                been forgotten, the file cannot be used, or another process has changed it so that
                it could not be opened again.
            ValueOutsideDomainError: if the label is not in the domain, without naming the label.
            ValueError: if the time is not in whole milliseconds within the years 1 to 9999.
        """
        spec.domain.check([label])
        source = entropy or SystemEntropy()

        def draw(mechanism: Mechanism) -> Reports:
            return mechanism.randomise(spec.domain.place([label], entropy=source), source)

        return self._release(spec, time_ms, draw, source)

    def release_index(
        self, spec: CollectionSpec, index: int, *, time_ms: int, entropy: Entropy | None = None
    ) -> Release:
        """Do the same as `release` for a value given by its index in `0..k-1`."""
        values = spec.mechanism.check_values(np.array([index]))
        source = entropy or SystemEntropy()
        return self._release(
            spec, time_ms, lambda mechanism: mechanism.randomise(values, source), source
        )

    def _release(
        self,
        spec: CollectionSpec,
        time_ms: int,
        draw: Callable[[Mechanism], Reports],
        entropy: Entropy,
    ) -> Release:
        cut_ms, start_ms = self._window(spec, time_ms)
        with self._store.reading():
            release = self._find_release(spec, start_ms)
        if release is not None:
            return release
        share = self._terms.share(spec, start_ms)
        if share is not None and not self._is_drawn(spec, share, start_ms):
            raise SkippedError(spec.name, reports=share.reports, windows=share.windows)
        with self._store.writing():
            # Another process may have come first.
            release = self._find_release(spec, start_ms)
            if release is not None:
                return release
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
        """Return the permanent report of a window's epoch, uint8 `(1, B)`, stored or drawn now."""
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
        """Return the cut time, and the start of the window in which its report is counted."""
        window_ms, time_ms = self._terms.window_ms(spec), whole_ms(time_ms)
        cut_ms = time_ms - time_ms % spec.precision_ms
        return cut_ms, cut_ms - cut_ms % window_ms

    def _find_release(self, spec: CollectionSpec, start_ms: int) -> Release | None:
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
        """Drop the reports of windows that end before a time, and return how many.

        Their charges stay, and a second report in such a window is still refused.
        """
        window_ms = self._terms.window_ms(spec)
        before_ms = whole_ms(before_ms) - window_ms + 1
        with self._store.writing():
            return self._store.forget(spec.fingerprint, before_ms, window_ms=window_ms)

    def spent(self, *, time_ms: int | None = None) -> Spent:
        """Return what the period of a time has spent, or all that was ever spent."""
        span = self._terms.period(time_ms)
        with self._store.reading():
            return read_spent(self._store, span)


def _forgotten(spec: CollectionSpec) -> LedgerError:
    return LedgerError(
        f"{spec.name}: expected a window after those that were forgotten, got one that has had "
        "its report"
    )


def _read_spread(raw: bool | str) -> Spread | None:
    if raw not in (True, False, "rolling"):
        raise LedgerError('spread: expected True, False or "rolling"')
    return "rolling" if raw == "rolling" else "fresh" if raw else None
