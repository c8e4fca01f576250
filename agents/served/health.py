"""One warning when the broker stops answering, one line when it is back, none for each error."""

import asyncio
import logging
import time
from typing import Final

from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError

_STEP_SECONDS: Final = 1.0
_SILENCE_SECONDS: Final = 5.0

log = logging.getLogger(__name__)


class BrokerWatch:
    """Whether the broker answers, as one consumer sees it."""

    def __init__(self) -> None:
        self.silent = False
        """Whether it has not answered for five seconds."""
        self._last: int | None = None
        self._heard = 0.0

    async def run(self, consumer: AIOKafkaConsumer, bootstrap: str) -> None:
        """Watch how long ago a consumer's fetches were answered, until cancelled.

        `consumer` fetches all the time: with nothing to read it is answered every half second.
        """
        while True:
            slept = time.monotonic()
            await asyncio.sleep(_STEP_SECONDS)
            now = time.monotonic()
            # Otherwise it was this process that stood still.
            if now - slept <= 2 * _STEP_SECONDS:
                answered = [consumer.last_poll_timestamp(p) for p in consumer.assignment()]
                self.look(
                    max((ms for ms in answered if ms is not None), default=None), bootstrap, now
                )

    def look(self, stamp: int | None, bootstrap: str, now: float) -> None:
        """Look at the client's stamp of the last answer, at a moment of the monotonic clock.

        Stamps are of the clock on the wall, which may be set: they only tell one from another.
        """
        if stamp is None:
            return
        before = self._heard
        if stamp != self._last:
            self._last, self._heard = stamp, now
        silent = now - self._heard > _SILENCE_SECONDS
        if silent and not self.silent:
            log.warning("no answer from the broker at %s: waiting for it", bootstrap)
        elif self.silent and not silent:
            log.info("the broker at %s answers again after %.0f s", bootstrap, now - before)
        self.silent = silent


def note_error(error: KafkaError) -> None:
    """Take a reader's error, which it gets over by itself."""
    log.debug("the broker refused or did not answer: %r", error)
