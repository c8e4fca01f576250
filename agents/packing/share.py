"""A partition that a packer reads, how it is told to pack, and what it tells."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from aiokafka import TopicPartition

from ldpstream.agents.packing.buffer import Buffer
from ldpstream.agents.packing.dating import Dating


@dataclass(frozen=True)
class PackOptions:
    """How long a record may wait for others, and how large a packed message may become."""

    linger_ms: int = 100
    limit_bytes: int = 512 << 10


@dataclass(frozen=True)
class PackHooks:
    """What a packer tells: `(collection, partition, ...)`."""

    packed: Callable[[str, int, int], None]
    """Called with the number of records of an acknowledged message, and its bytes."""
    left_out: Callable[[str, int], None]
    """Called with a number of records that were too large to be packed."""
    failed: Callable[[str], None]
    """Called for every message that was not acknowledged and is sent again."""
    lag: Callable[[str, int, int | None], None]
    """Called with the number of records that are not packed yet; None where no longer ours."""


@dataclass
class Share:
    """A partition of a source that is ours for now."""

    source: TopicPartition
    buffer: Buffer
    dating: Dating
    began: float = 0.0
    """When the first of the records in the buffer came."""
    acknowledged: int | None = None
    flight: "asyncio.Task[None] | None" = None
    given_up: bool = False
    astray: bool = False
    """Whether the source does not have our place in it any more."""
