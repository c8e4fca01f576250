"""Asking a running worker from a command: its token, and its refusals as messages."""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from ldpstream.agents.client import AddressError, ApiError, Client, RefusedError, TokenRefusedError
from ldpstream.agents.client import connect as connect_client
from ldpstream.agents.config.secret import EnvironmentSecret, FileSecret, SecretError
from ldpstream.agents.terminal.errors import Failed, Refused

Command = TypeVar("Command", bound=Callable[..., Any])

TOKEN_VARIABLE: Final = "LDPSTREAM_TOKEN"  # noqa: S105 (a name, not a token)


def token_options(command: Command) -> Command:
    """Add the options that say where the worker's token is; pass them to `read_token`."""
    for option in (
        click.option(
            "--token-file",
            type=click.Path(path_type=Path),
            metavar="PATH",
            help="A file that holds the worker's token.",
        ),
        click.option(
            "--token-env",
            metavar="NAME",
            help=f"The environment variable that holds it; {TOKEN_VARIABLE} if set.",
        ),
    ):
        command = option(command)
    return command


def read_token(token_env: str | None, token_file: Path | None) -> str | None:
    """Return the token; None where nothing says that there is one.

    Raises:
        Refused: where it is not where it was said to be, or in two places.
    """
    try:
        if token_env is not None and token_file is not None:
            raise Refused("--token-env: expected --token-env or --token-file, not both")
        if token_env is not None:
            return EnvironmentSecret(token_env).reveal()
        if token_file is not None:
            return FileSecret(token_file).reveal()
    except SecretError as error:
        name = "--token-env" if token_env is not None else "--token-file"
        raise Refused(f"{name}: {error}") from error
    return os.environ.get(TOKEN_VARIABLE) or None


@asynccontextmanager
async def connect(url: str, *, token: str | None = None) -> AsyncIterator[Client]:
    """Return a client of the worker at a URL, closed at the end of the block.

    Raises:
        Refused: where the worker refuses a request, with its own words, or the URL is none.
        Failed: where it does not answer, or answers something else.
    """
    try:
        async with connect_client(url, token=token) as client:
            yield client
    except TokenRefusedError as error:
        wanted = "another token" if token is not None else "a token"
        raise Refused(
            f"{url}: the worker wants {wanted}: set {TOKEN_VARIABLE}, --token-env or --token-file"
        ) from error
    except (AddressError, RefusedError) as error:
        raise Refused(str(error)) from error
    except ApiError as error:
        raise Failed(str(error)) from error
