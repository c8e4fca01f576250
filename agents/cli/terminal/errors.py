"""How commands end when they do not succeed: one plain message on stderr, and an exit code.

All functions of commands may raise both of these.
"""

import click

FAILED = 1
REFUSED = 2


class Failed(click.ClickException):
    """A check failed, or something that was needed did not answer: exit code 1."""

    exit_code = FAILED


class Refused(click.ClickException):
    """Wrong use or wrong input: exit code 2."""

    exit_code = REFUSED
