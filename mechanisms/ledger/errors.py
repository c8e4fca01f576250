"""The errors of a ledger."""

from dataclasses import KW_ONLY, dataclass
from fractions import Fraction

from ldpstream.mechanisms.base.times import LATEST_MS, format_duration, format_time
from ldpstream.mechanisms.exact.dyadic import float_above


class LedgerError(ValueError):
    """A ledger cannot be used; the message names the file or key and what was expected."""


@dataclass(eq=False)
class SkippedError(LedgerError):
    """The ledger spreads its budget over other windows than this one.

    The device takes part in `reports` of the period's `windows`.
    """

    collection: str
    _: KW_ONLY
    reports: int
    windows: int

    def __str__(self) -> str:
        return (
            f"{self.collection}: expected one of the windows that the budget is spread over, "
            f"{self.reports} of {self.windows}"
        )


@dataclass(eq=False)
class BudgetError(LedgerError):
    """A report would spend more than the budget allows.

    `spent` and `asked` are exact losses in the period, and `allowed` is the budget. `horizon_ms` is
    the length of a period, None if there is one without end. `next_ms` is when the next begins,
    None if there is none, or if any time span of that length is a period.
    """

    collection: str
    _: KW_ONLY
    spent: Fraction
    asked: Fraction
    allowed: Fraction
    horizon_ms: int | None
    next_ms: int | None

    def __str__(self) -> str:
        return self.explain(budget="budget", horizon="horizon_ms")

    def explain(self, *, budget: str, horizon: str) -> str:
        """Return the message, with the user's names of the two settings."""
        spent, asked = f"{float_above(self.spent):g}", f"{float_above(self.asked):g}"
        wait = ""
        if self.horizon_ms is None:
            period = f"for ever (without {horizon})"
        elif self.next_ms is None:
            period = f"in any {format_duration(self.horizon_ms)} in a row ({horizon})"
        else:
            period = f"in a period of {format_duration(self.horizon_ms)} ({horizon})"
            if self.asked <= self.allowed and self.next_ms <= LATEST_MS:
                wait = f"wait for the next, which begins at {format_time(self.next_ms)}, or "
        return (
            f"{self.collection}: expected at most {float(self.allowed):g} ({budget}) {period}, "
            f"got {spent} spent and {asked} asked: {wait}choose a larger {budget}"
        )
