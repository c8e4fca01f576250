"""A worker's client for commands: its errors as messages."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ldpstream.agents.cli.terminal.errors import Failed, Refused
from ldpstream.agents.cli.terminal.tokens import TOKEN_VARIABLE
from ldpstream.agents.client import AddressError, ApiError, Client, RefusedError, TokenRefusedError
from ldpstream.agents.client import connect as connect_client


@asynccontextmanager
async def connect(url: str, *, token: str | None = None) -> AsyncIterator[Client]:
    """Return a client of the worker at a URL, closed at the end of the block.

    Raises:
        Refused: where the worker refuses a request, in its own words, or the URL is invalid.
        Failed: where it does not answer, or is not a worker.
    """
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
