"""Refusals of uploads: the status, and what was expected."""

from typing import Final

RETRY_SECONDS: Final = 2
"""The value of `Retry-After` if an upload may be repeated."""

TITLES: Final = {
    400: "Not an upload",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    410: "Too few",
    413: "Too large",
    415: "Unsupported media type",
    429: "The queue is full",
    503: "Try again later",
}


class UploadRefusedError(Exception):
    """An upload that is not accepted; its text never contains any part of a report."""

    def __init__(self, status: int, result: str, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.result = result
        """The metric label under which it is counted."""
        self.detail = detail
