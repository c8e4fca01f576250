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

    async def run(self, consumer: AIOKafkaConsumer, bootstrap: str) -> None:
        """Watch how long ago a consumer's fetches were answered, until cancelled.

        `consumer` fetches all the time: with nothing to read it is answered every half second.
        """
        since = 0.0
        while True:
            slept = time.monotonic()
            await asyncio.sleep(_STEP_SECONDS)
            if time.monotonic() - slept > 2 * _STEP_SECONDS:
                # It was this process that stood still.
                continue
            answered = [consumer.last_poll_timestamp(p) for p in consumer.assignment()]
            latest = max((ms / 1000 for ms in answered if ms is not None), default=None)
            if latest is None:
                continue
            silent = time.time() - latest > _SILENCE_SECONDS
            if silent and not self.silent:
                since = latest
                log.warning("no answer from the broker at %s: waiting for it", bootstrap)
            elif self.silent and not silent:
                log.info("the broker at %s answers again after %.0f s", bootstrap, latest - since)
            self.silent = silent


def note_error(error: KafkaError) -> None:
    """Take a reader's error, which it gets over by itself."""
    log.debug("the broker refused or did not answer: %r", error)
