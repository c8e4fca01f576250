"""Where a worker is, and its token: what costs little, before the client is loaded."""

import os
import socket
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import click

from ldpstream.agents.client.errors import no_address, nobody_answers
from ldpstream.agents.config.secret import EnvironmentSecret, FileSecret, SecretError
from ldpstream.agents.terminal.errors import Failed, Refused
from ldpstream.agents.terminal.gathered import gathered

TOKEN_VARIABLE: Final = "LDPSTREAM_TOKEN"  # noqa: S105 (a name, not a token)
_CONNECT_SECONDS: Final = 5.0


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


token_options = gathered(
    "token",
    read_token,
    click.option(
        "--token-env",
        metavar="NAME",
        help=f"The environment variable that holds it; {TOKEN_VARIABLE} if set.",
    ),
    click.option(
        "--token-file",
        type=click.Path(path_type=Path),
        metavar="PATH",
        help="A file that holds the worker's token.",
    ),
)


def knock(url: str) -> None:
    """Find out whether anybody listens: the client takes far longer to load than that takes.

    Raises:
        Refused: where the URL is none of HTTP, with the client's own words.
        Failed: where no connection is taken, with the same.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
        if not host or parts.scheme not in {"http", "https"}:
            raise Refused(str(no_address(url)))
        socket.create_connection((host, port), timeout=_CONNECT_SECONDS).close()
    except ValueError as error:  # of the port, or of what is no name of a host
        raise Refused(str(no_address(url))) from error
    except OSError as error:
        raise Failed(str(nobody_answers(url.rstrip("/")))) from error
