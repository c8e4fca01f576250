"""A partition that a packer reads, a packer's options, and its callbacks."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from aiokafka import TopicPartition

from ldpstream.agents.packing.buffer import Buffer
from ldpstream.agents.packing.dating import Dating


@dataclass(frozen=True)
class PackOptions:
    """How long a record may wait for others, and how large a packed message may be."""

    linger_ms: int = 100
    limit_bytes: int = 512 << 10


@dataclass(frozen=True)
class PackHooks:
    """Callbacks of a packer: `(collection, partition, ...)`."""

    packed: Callable[[str, int, int], None]
    """Called with the number of records of an acknowledged message, and its bytes."""
    left_out: Callable[[str, int], None]
    """Called with the number of records that were too large to be packed."""
    failed: Callable[[str], None]
    """Called for every message that was not acknowledged and is sent again."""
    lag: Callable[[str, int, int | None], None]
    """Called with the number of records not packed yet; None when the partition is not ours."""


@dataclass
class AssignedPartition:
    """A partition of a source that is currently ours."""

    source: TopicPartition
    buffer: Buffer
    dating: Dating
    began: float = 0.0
    """When the first record in the buffer arrived."""
    acknowledged: int | None = None
    flight: "asyncio.Task[None] | None" = None
    given_up: bool = False
    astray: bool = False
    """Whether our position no longer exists in the source."""
