"""Log only once that the broker refuses what is retried."""

import logging
from collections.abc import Hashable

from aiokafka.errors import KafkaError

log = logging.getLogger(__name__)


class Complaints:
    """What has been logged about topics or partitions that cannot be written."""

    def __init__(self) -> None:
        self._of: dict[Hashable, str] = {}

    def note(self, key: Hashable, error: KafkaError, what: str) -> None:
        """Log a permanent error of `what` once, however many partitions have it."""
        if error.retriable:
            return
        if repr(error) not in self._of.values():
            log.warning("%s cannot be written and is tried again: %r", what, error)
        self._of[key] = repr(error)

    def over(self, key: Hashable) -> None:
        """Forget an error, so that it is logged again if it comes back."""
        self._of.pop(key, None)
