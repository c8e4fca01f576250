"""What a ledger refuses."""

from fractions import Fraction

from ldpstream.mechanisms.exact.dyadic import float_above


class LedgerError(ValueError):
    """A ledger cannot be used: the message says which file, and what was expected."""


class SkippedError(LedgerError):
    """The device does not take part in a window, because its ledger spreads the budget."""

    def __init__(self, collection: str, *, reports: int, windows: int) -> None:
        super().__init__(
            f"{collection}: expected one of the windows that the budget is spread over, "
            f"{reports} of {windows}"
        )
        self.collection = collection
        self.reports = reports
        self.windows = windows


class BudgetError(LedgerError):
    """A report would spend more than is allowed.

    `spent` and `asked` are exact losses of the period, `allowed` the budget, None where budgets are
    those of pairs and `spent` and `asked` those of the largest one.
    """

    def __init__(
        self, collection: str, *, spent: Fraction, asked: Fraction, allowed: Fraction | None
    ) -> None:
        limit = "the budgets of some pair" if allowed is None else f"{float(allowed):g}"
        super().__init__(
            f"{collection}: expected at most {limit} in this period, got {float_above(spent):g} "
            f"spent and {float_above(asked):g} asked"
        )
        self.collection = collection
        self.spent = spent
        self.asked = asked
        self.allowed = allowed
