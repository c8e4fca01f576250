"""A worker's address, with cheap checks before its client is loaded, and the client.

Errors of the client become messages.
"""

import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from ldpstream.agents.cli.terminal.errors import Failed, Refused
from ldpstream.agents.config.hosts import is_url
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

_TOKEN_VARIABLE: Final = "LDPSTREAM_TOKEN"  # noqa: S105 (a name, not a token)
_CONNECT_SECONDS: Final = 5.0


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
async def connect(url: str) -> "AsyncIterator[Client]":
    """Return a client of the worker at a URL, closed at the end of the block.

    The worker's token is that of the environment variable, if it is set.
    """
    from ldpstream.agents.document.client.session import connect as connect_client

    token = os.environ.get(_TOKEN_VARIABLE) or None
    try:
        async with connect_client(url, token=token) as client:
            yield client
    except TokenRefusedError as error:
        expected = "another token" if token is not None else "a token"
        raise Refused(f"{url}: the worker wants {expected}: set {_TOKEN_VARIABLE}") from error
    except (AddressError, RefusedError) as error:
        raise Refused(str(error)) from error
    except ApiError as error:
        raise Failed(str(error)) from error
