"""Deleting dead records from the changelog, so that it stays as short as its state.

Correctness never depends on it: deleting a dead record twice, late or never does no harm.
"""

import asyncio
import logging
from collections.abc import Awaitable
from typing import Final, Protocol

from aiokafka.errors import KafkaError

from ldpstream.agents.engine import Engine

_EVERY_SECONDS: Final = 5.0
_RECORDS_A_ROUND: Final = 5_000

log = logging.getLogger(__name__)


class SendDeletion(Protocol):
    """Sends a deletion to a partition of the changelog."""

    def __call__(self, key: bytes, value: None, partition: int) -> Awaitable[None]:
        """Return when it has been acknowledged."""


async def sweep(engine: Engine, send: SendDeletion) -> None:
    """Sweep the partitions that an engine holds, until cancelled."""
    sent: set[tuple[int, bytes]] = set()
    while True:
        await asyncio.sleep(_EVERY_SECONDS)
        dead = {
            (partition, key) for partition in engine.held for key in engine.tails[partition].dead()
        }
        # What is still dead and was sent has not been read back yet.
        due = list(dead - sent)[:_RECORDS_A_ROUND]
        sent &= dead
        try:
            await asyncio.gather(*(send(key, None, partition) for partition, key in due))
        except KafkaError as error:
            log.debug("sweeping %s failed: %r", engine.config.name, error)
        else:
            sent |= set(due)
