"""The errors of a request to a worker. No message contains a token."""


class ApiError(Exception):
    """A request that got no answer."""


class AddressError(ApiError):
    """The URL is not one of HTTP."""


class UnreachableError(ApiError):
    """Nobody answers at the URL, or the connection broke."""


def no_address(url: str) -> AddressError:
    """Return the error for a URL that is not one of HTTP."""
    return AddressError(f"{url}: expected a URL such as http://127.0.0.1:6066")


def nobody_answers(url: str) -> UnreachableError:
    """Return the error where nothing accepts connections."""
    return UnreachableError(
        f"no worker answers at {url}: is it running, and is the URL the one that it printed?"
    )


class NotAWorkerError(ApiError):
    """Somebody answers at the URL, but no worker."""


class RefusedError(ApiError):
    """The worker refuses the request: in its own words, with the HTTP status, 400 to 499."""

    def __init__(self, text: str, *, status: int) -> None:
        super().__init__(text)
        self.status = status


class TokenRefusedError(RefusedError):
    """The worker wants a token, or another one."""


class UnavailableError(ApiError):
    """The worker cannot answer now, in its own words, but may later."""
