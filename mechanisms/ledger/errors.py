"""What a ledger refuses."""

from dataclasses import KW_ONLY, dataclass
from fractions import Fraction

from ldpstream.mechanisms.exact.dyadic import float_above


class LedgerError(ValueError):
    """A ledger cannot be used: the message says which file, and what was expected."""


@dataclass(eq=False)
class SkippedError(LedgerError):
    """The device does not take part in a window, because its ledger spreads the budget."""

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
    """A report would spend more than is allowed.

    `spent` and `asked` are exact losses of the period, `allowed` the budget, None where budgets are
    those of pairs and `spent` and `asked` those of the largest one.
    """

    collection: str
    _: KW_ONLY
    spent: Fraction
    asked: Fraction
    allowed: Fraction | None

    def __str__(self) -> str:
        allowed = self.allowed
        limit = "the budgets of some pair" if allowed is None else f"{float(allowed):g}"
        spent, asked = f"{float_above(self.spent):g}", f"{float_above(self.asked):g}"
        return (
            f"{self.collection}: expected at most {limit} in this period, got {spent} spent and "
            f"{asked} asked"
        )
