"""The budget ledger of a device: what it has reported and spent, in a file."""

from ldpstream.mechanisms.ledger.errors import BudgetError, LedgerError, SkippedError
from ldpstream.mechanisms.ledger.ledger import Ledger, Release
from ldpstream.mechanisms.ledger.spent import Spent, WindowSpent

__all__ = [
    "BudgetError",
    "Ledger",
    "LedgerError",
    "Release",
    "SkippedError",
    "Spent",
    "WindowSpent",
]
