"""Asking before what cannot be undone."""

import click

from ldpstream.agents.terminal.errors import Failed


def confirm(question: str) -> None:
    """Ask on standard error, and go on after a yes.

    Raises:
        Failed: after a no, and where nobody is there to ask.
    """
    try:
        confirmed = click.confirm(question, err=True)
    except click.Abort:
        click.echo(err=True)
        raise Failed("nothing was changed: nobody to ask, and no --yes") from None
    if not confirmed:
        raise Failed("nothing was changed")
