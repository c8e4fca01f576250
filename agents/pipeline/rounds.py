"""Periodic work of all engines of a worker, each kind of it in one task.

The more partitions there are the less often it is done.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import Final

from ldpstream.agents.pipeline.engine import Engine
from ldpstream.agents.pipeline.flushing import FlushPace
from ldpstream.agents.reading.contained import contained
from ldpstream.agents.reading.interval import scaled_interval

TICK_SECONDS: Final = 0.1
_MOST_TICK_SECONDS: Final = 0.5
_WATCH_SECONDS: Final = 2.0
_MOST_WATCH_SECONDS: Final = 10.0


async def keep_ticking(engines: Sequence[Engine], pace: FlushPace) -> None:
    """Load partitions, advance time and flush, until cancelled."""
    while True:
        deciding = False
        with pace.round(time.monotonic()):
            for engine in engines:
                with contained(engine.fail):
                    deciding |= engine.tick()
                await asyncio.sleep(0)
        held = sum(len(engine.held) for engine in engines)
        pause = scaled_interval(TICK_SECONDS, held, most=_MOST_TICK_SECONDS)
        await asyncio.sleep(0 if deciding else pause)


async def keep_checking_topics(engines: Sequence[Engine]) -> None:
    """Check now and then that topics are still the same, until cancelled.

    A flush checks those that it needs. This is for collections at rest.
    """
    many = sum(engine.config.partitions for engine in engines)
    every_seconds = scaled_interval(_WATCH_SECONDS, many, most=_MOST_WATCH_SECONDS)
    while True:
        await asyncio.sleep(every_seconds)
        # Whoever asks at the same time shares an answer.
        await asyncio.gather(*(engine.check_topics() for engine in engines if not engine.stopped))
