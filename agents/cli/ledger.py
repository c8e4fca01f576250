"""`ldpstream ledger`: show what a ledger has spent."""

import json
from pathlib import Path
from typing import Final

import click

from ldpstream.agents.broker.record_time import now_ms
from ldpstream.agents.cli.terminal.errors import Refused
from ldpstream.agents.config.privacy.over_time import spent_sentences
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.exact.dyadic import float_above
from ldpstream.mechanisms.ledger.errors import LedgerError
from ldpstream.mechanisms.ledger.spent import read_spent
from ldpstream.mechanisms.ledger.store import LedgerStore

_YEAR_MS: Final = 365 * 86_400_000


def print_spent(file: str) -> None:
    """Print what a ledger has spent, in total and window by window."""
    now = now_ms()
    try:
        store = LedgerStore(Path(file))
    except LedgerError as error:
        raise Refused(str(error)) from None
    try:
        with store.reading():
            spent = read_spent(store, None)
            year = read_spent(store, (now - _YEAR_MS, now + 1))
    finally:
        store.close()
    document: dict[str, Json] = {
        "said": list(spent_sentences(year, "the past year")),
        "year": {"spent": float_above(year.total), "exact": str(year.total)},
        **spent.to_json(),
    }
    click.echo(json.dumps(document, indent=2))
