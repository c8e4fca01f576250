"""One warning when the broker stops answering, one line when it is back."""

import asyncio
import logging
import time
from typing import Final

from aiokafka import AIOKafkaConsumer

_STEP_SECONDS: Final = 1.0
_SILENCE_SECONDS: Final = 5.0

log = logging.getLogger(__name__)


async def watch_broker(consumer: AIOKafkaConsumer, bootstrap: str) -> None:
    """Watch how long ago a consumer's fetches were answered, until cancelled.

    `consumer` fetches all the time: with nothing to read it is answered every half second.
    """
    since: float | None = None
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
        silence = time.time() - latest
        if since is None and silence > _SILENCE_SECONDS:
            since = latest
            log.warning("no answer from the broker at %s: waiting for it", bootstrap)
        elif since is not None and silence < _SILENCE_SECONDS:
            log.info("the broker at %s answers again after %.0f s", bootstrap, latest - since)
            since = None
