"""A worker's address and token: cheap checks, before the client is loaded."""

import os
import socket
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import click

from ldpstream.agents.cli.terminal.errors import Failed, Refused
from ldpstream.agents.cli.terminal.option_groups import group_options
from ldpstream.agents.config.hosts import is_url
from ldpstream.agents.config.secret import EnvironmentSecret, FileSecret, SecretError
from ldpstream.agents.document.client.errors import no_address, nobody_answers

TOKEN_VARIABLE: Final = "LDPSTREAM_TOKEN"  # noqa: S105 (a name, not a token)
_CONNECT_SECONDS: Final = 5.0


def read_token(token_env: str | None, token_file: Path | None) -> str | None:
    """Return the worker's token; None where none is given.

    Raises:
        Refused: where it cannot be read, or two places are given.
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
    """Find out whether anybody listens, before the client is loaded, which takes far longer.

    Raises:
        Refused: where the URL is not one of HTTP, in the client's own words.
        Failed: where nothing accepts connections, in the same words.
    """
    if not is_url(url):
        raise Refused(str(no_address(url)))
    address = urlsplit(url)
    port = address.port or (443 if address.scheme == "https" else 80)
    try:
        socket.create_connection((address.hostname, port), timeout=_CONNECT_SECONDS).close()
    except OSError as error:
        raise Failed(str(nobody_answers(url.rstrip("/")))) from error
