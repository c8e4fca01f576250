"""Confirmation before what cannot be undone."""

import click

from ldpstream.agents.terminal.errors import Failed


def confirm(question: str) -> None:
    """Ask on standard error, and return after a yes.

    Raises:
        Failed: after a no, or where standard input has no answer.
    """
    try:
        confirmed = click.confirm(question, err=True)
    except click.Abort:
        click.echo(err=True)
        raise Failed("nothing was changed: nobody answered; give --yes to not be asked") from None
    if not confirmed:
        raise Failed("nothing was changed")
