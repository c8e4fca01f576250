"""Say once that the broker refuses to take what is tried again and again."""

import logging
from collections.abc import Hashable

from aiokafka.errors import KafkaError

log = logging.getLogger(__name__)


class Complaints:
    """What has been said of topics or partitions that cannot be written."""

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
        """Forget an error: it is said again if it comes back."""
        self._of.pop(key, None)
