"""The budget ledger of a device: what it has reported and spent, in a file."""

from typing import TYPE_CHECKING

from ldpstream.mechanisms.base.lazy import handed_on

if TYPE_CHECKING:
    from ldpstream.mechanisms.ledger.errors import BudgetError, LedgerError, SkippedError
    from ldpstream.mechanisms.ledger.ledger import Ledger, Release
    from ldpstream.mechanisms.ledger.spent import Spent, WindowSpent
else:
    __getattr__ = handed_on(
        __name__,
        {
            "ldpstream.mechanisms.ledger.errors": "BudgetError LedgerError SkippedError",
            "ldpstream.mechanisms.ledger.ledger": "Ledger Release",
            "ldpstream.mechanisms.ledger.spent": "Spent WindowSpent",
        },
    )

__all__ = [
    "BudgetError",
    "Ledger",
    "LedgerError",
    "Release",
    "SkippedError",
    "Spent",
    "WindowSpent",
]
