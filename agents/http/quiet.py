"""The HTTP server's log: its own failures, and nothing about who asked."""

import logging
from typing import Final

from aiohttp.http_exceptions import HttpProcessingError

_NAME: Final = "ldpstream.agents.http.server"


class _Quiet(logging.Filter):
    """Drops what others do wrong, which they are told, and takes addresses out of the rest."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is kept."""
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, HttpProcessingError):
            return False
        if record.args:
            record.msg, record.args = "a request failed", ()
        return True


def server_log() -> logging.Logger:
    """Return the log that the server writes to."""
    log = logging.getLogger(_NAME)
    if not any(isinstance(one, _Quiet) for one in log.filters):
        log.addFilter(_Quiet())
    return log
