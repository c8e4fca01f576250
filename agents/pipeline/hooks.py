"""The callbacks that connect an engine to the rest of the worker."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from ldpstream.agents.kafka.answers import steady_ms
from ldpstream.agents.partition.flushes import Outcome
from ldpstream.agents.pipeline.flush_writer import Sending
from ldpstream.agents.reading.taking import FramesHooks


@dataclass(frozen=True)
class Hooks:
    """The callbacks of an engine; see also `FlushWriter`."""

    sending: Sending
    source_id: Callable[[], bytes]
    """Returns the id of the source topic; empty if the broker has none."""
    source_partitions: Callable[[], int]
    """Returns how many partitions the source topic has, as far as known."""
    check_source: Callable[[], Awaitable[None]]
    won: Callable[[int, int, Outcome, float], None]
    """Called with partition, next offset, what was added, and the seconds that the flush took."""
    frames: FramesHooks
    now_ms: Callable[[], int] = field(default=lambda: time.time_ns() // 1_000_000)
    steady_ms: Callable[[], int] = steady_ms
    trouble: Callable[[], str] = str
    """Returns why counting is suspended, as a sentence; empty if it is not."""
