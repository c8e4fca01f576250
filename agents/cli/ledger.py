"""`ldpstream ledger`: what a ledger has spent."""

import json
from pathlib import Path

import click

from ldpstream.agents.terminal.errors import Refused
from ldpstream.mechanisms.ledger.errors import LedgerError
from ldpstream.mechanisms.ledger.spent import read_spent
from ldpstream.mechanisms.ledger.store import LedgerStore


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
def ledger(file: str) -> None:
    """Print what a ledger has spent, in all and window by window, as JSON.

    Losses are those of the worst pair of values; "exact" is a fraction, "spent" rounded up.
    """
    try:
        store = LedgerStore(Path(file))
    except LedgerError as error:
        raise Refused(str(error)) from None
    try:
        with store.reading():
            spent = read_spent(store, None)
    finally:
        store.close()
    click.echo(json.dumps(spent.to_json(), indent=2))
