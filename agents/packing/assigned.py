"""A partition that a packer reads, and a packer's options."""

import asyncio
from dataclasses import dataclass

from aiokafka import TopicPartition

from ldpstream.agents.packing.buffer import Buffer
from ldpstream.agents.packing.dating import Dating


@dataclass(frozen=True)
class PackOptions:
    """How long a record may wait for others, and how large a packed message may be."""

    linger_ms: int = 100
    limit_bytes: int = 512 << 10


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
