"""Why a worker could not be asked. No text shows a token."""


class ApiError(Exception):
    """A request that got no answer."""


class AddressError(ApiError):
    """The URL is none of HTTP."""


class UnreachableError(ApiError):
    """Nobody answers at the URL, or whoever did went away in the middle."""


def no_address(url: str) -> AddressError:
    """Return the error where a URL is none of HTTP."""
    return AddressError(f"{url}: expected a URL such as http://127.0.0.1:6066")


def nobody_answers(url: str) -> UnreachableError:
    """Return the error where nothing takes connections."""
    return UnreachableError(
        f"no worker answers at {url}: is it running, and is the URL the one that it printed?"
    )


class NotAWorkerError(ApiError):
    """Somebody answers at the URL, but no worker."""


class RefusedError(ApiError):
    """The worker refuses the request: its own words, and the HTTP status, 400 to 499."""

    def __init__(self, text: str, *, status: int) -> None:
        super().__init__(text)
        self.status = status


class TokenRefusedError(RefusedError):
    """The worker wants a token, or another one."""


class UnavailableError(ApiError):
    """The worker cannot answer now: its own words. It may later."""
