"""The errors of a ledger."""

from dataclasses import KW_ONLY, dataclass
from fractions import Fraction

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

    `spent` and `asked` are exact losses in the period, and `allowed` is the budget.
    """

    collection: str
    _: KW_ONLY
    spent: Fraction
    asked: Fraction
    allowed: Fraction

    def __str__(self) -> str:
        spent, asked = f"{float_above(self.spent):g}", f"{float_above(self.asked):g}"
        return (
            f"{self.collection}: expected at most {float(self.allowed):g} in this period, "
            f"got {spent} spent and {asked} asked"
        )
