"""A worker's address and token, with cheap checks before its client is loaded, and the client.

Errors of the client become messages.
"""

import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import click

from ldpstream.agents.cli.terminal.errors import Failed, Refused
from ldpstream.agents.cli.terminal.parameters import group_options
from ldpstream.agents.config.hosts import is_url
from ldpstream.agents.config.secret import EnvironmentSecret, FileSecret, SecretError
from ldpstream.agents.document.client.errors import (
    AddressError,
    ApiError,
    RefusedError,
    TokenRefusedError,
    no_address,
    nobody_answers,
)

if TYPE_CHECKING:
    from ldpstream.agents.document.client.session import Client

TOKEN_VARIABLE: Final = "LDPSTREAM_TOKEN"  # noqa: S105 (a name, not a token)
_CONNECT_SECONDS: Final = 5.0


def read_token(token_env: str | None, token_file: Path | None) -> str | None:
    """Return the worker's token; None where none is given."""
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


token_options = group_options(
    "token",
    read_token,
    click.option(
        "--token-env",
        metavar="NAME",
        help=f"The environment variable with the worker's token; by default {TOKEN_VARIABLE}.",
    ),
    click.option(
        "--token-file",
        type=click.Path(path_type=Path),
        metavar="PATH",
        help="A file with the worker's token.",
    ),
)


def check_reachable(url: str) -> None:
    """Find out whether anybody listens, before the client is loaded, which takes far longer."""
    if not is_url(url):
        raise Refused(str(no_address(url)))
    address = urlsplit(url)
    port = address.port or (443 if address.scheme == "https" else 80)
    try:
        socket.create_connection((address.hostname, port), timeout=_CONNECT_SECONDS).close()
    except OSError as error:
        raise Failed(str(nobody_answers(url.rstrip("/")))) from error


@asynccontextmanager
async def connect(url: str, *, token: str | None = None) -> "AsyncIterator[Client]":
    """Return a client of the worker at a URL, closed at the end of the block."""
    from ldpstream.agents.document.client.session import connect as connect_client

    try:
        async with connect_client(url, token=token) as client:
            yield client
    except TokenRefusedError as error:
        expected = "another token" if token is not None else "a token"
        raise Refused(
            f"{url}: the worker wants {expected}: set {TOKEN_VARIABLE}, --token-env or --token-file"
        ) from error
    except (AddressError, RefusedError) as error:
        raise Refused(str(error)) from error
    except ApiError as error:
        raise Failed(str(error)) from error
