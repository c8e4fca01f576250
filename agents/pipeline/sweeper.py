"""Deleting dead records from the changelog, so that it stays as short as its state.

Correctness never depends on it: deleting a dead record twice, late or never does no harm.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

from aiokafka.errors import KafkaError

from ldpstream.agents.pipeline.engine import Engine

_EVERY_SECONDS: Final = 5.0
_RECORDS_A_ROUND: Final = 20_000

log = logging.getLogger(__name__)


Delete: TypeAlias = Callable[[int, Sequence[tuple[bytes, None]]], Awaitable[None]]
"""Sends deletions, keys without values, to a partition; returns when they are acknowledged."""


async def sweep(engine: Engine, delete: Delete) -> None:
    """Sweep the partitions that an engine holds, until cancelled."""
    sent: dict[int, set[bytes]] = {}
    while True:
        await asyncio.sleep(_EVERY_SECONDS)
        room = _RECORDS_A_ROUND
        due: dict[int, list[bytes]] = {}
        dead = {partition: engine.tails[partition].dead() for partition in engine.held}
        for partition, keys in dead.items():
            # What is still dead and was sent has not been read back yet.
            before = sent.get(partition, set())
            sent[partition] = before.intersection(keys)
            if found := [key for key in keys if key not in before][:room]:
                due[partition] = found
                room -= len(found)
        sent = {partition: keys for partition, keys in sent.items() if partition in dead}
        try:
            await asyncio.gather(
                *(
                    delete(partition, [(key, None) for key in keys])
                    for partition, keys in due.items()
                )
            )
        except KafkaError as error:
            log.debug("sweeping %s failed: %r", engine.config.name, error)
        else:
            for partition, keys in due.items():
                sent[partition].update(keys)
