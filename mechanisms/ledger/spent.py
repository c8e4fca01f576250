"""What a ledger has spent, window by window, and the reading of budgets."""

from dataclasses import dataclass
from fractions import Fraction

from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.base.numbers import read_decimal
from ldpstream.mechanisms.base.times import format_time
from ldpstream.mechanisms.exact.dyadic import float_above
from ldpstream.mechanisms.ledger.store import LedgerStore


@dataclass(frozen=True)
class WindowSpent:
    """The exact largest loss of the report of one window.

    With `hold`, that of the `reports` of one epoch that lie in the period.
    """

    collection: str
    fingerprint: bytes
    start_ms: int
    end_ms: int
    loss: Fraction
    reports: int = 1


@dataclass(frozen=True)
class Spent:
    """What a period has spent: the largest loss of each of its reports, and their sum."""

    total: Fraction
    windows: tuple[WindowSpent, ...]

    def to_json(self) -> dict[str, Json]:
        """Return losses as exact fractions and as floats rounded up."""
        windows: list[Json] = [
            {
                "collection": window.collection,
                "fingerprint": window.fingerprint.hex(),
                "window": {
                    "start": format_time(window.start_ms),
                    "end": format_time(window.end_ms),
                },
                "spent": float_above(window.loss),
                "exact": str(window.loss),
                **({"reports": window.reports} if window.reports > 1 else {}),
            }
            for window in self.windows
        ]
        return {"spent": float_above(self.total), "exact": str(self.total), "windows": windows}


def read_budget(budget: Fraction | float | str) -> Fraction:
    """Return a budget as the decimal that was written.

    Raises:
        SpecError: if it is not a finite number above 0.

    >>> read_budget(0.3), read_budget("1/3")
    (Fraction(3, 10), Fraction(1, 3))
    """
    numerator, fraction, denominator = str(budget).partition("/")
    try:
        number = read_decimal(numerator) / (read_decimal(denominator) if fraction else 1)
    except (ValueError, ZeroDivisionError):
        number = Fraction(0)
    if number <= 0:
        raise SpecError("budget", "a finite number above 0")
    return number


def read_spent(store: LedgerStore, span_ms: tuple[int, int] | None) -> Spent:
    """Return what the windows that overlap a span, or all windows, have spent."""
    windows = [
        WindowSpent(
            known.name,
            fingerprint,
            window.start_ms,
            window.end_ms,
            known.loss,
            reports=window.reports,
        )
        for fingerprint, known in store.specs().items()
        for window in store.charged(fingerprint, span_ms, window_ms=known.window_ms)
    ]
    windows.sort(key=lambda window: (window.start_ms, window.fingerprint))
    total = sum((window.loss for window in windows), Fraction(0))
    return Spent(total, tuple(windows))
