"""`[worker]`: a worker's group and shard, its address, and where it keeps its state.

A worker runs the collections whose names fall to its shard. The shard of a name is the first eight
bytes of its SHA-256, as a big-endian number, modulo the number of shards. So shard i of n is the
union of shards i and i + n of 2n: doubling the number splits each shard in two.
"""

import hashlib
import re
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from ldpstream.agents.config.errors import refused
from ldpstream.agents.config.hosts import is_url
from ldpstream.agents.config.serving import PlacedFile, ServingTable, check_origin

_MOST_SHARDS: Final = 10_000
_SHARD: Final = re.compile(r"([1-9][0-9]{0,4})/([1-9][0-9]{0,4})")
_ADVERTISED: Final = re.compile(r"https?://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(:[0-9]{1,5})?")
_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")
_NAME_LENGTH: Final = 200  # Kafka allows 249 characters in a topic, and suffixes are added to this


@dataclass(frozen=True)
class Shard:
    """Shard `number` of `total`, counted from 1; shard 1 of 1 has all collections."""

    number: int = 1
    total: int = 1

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """Return the shard of a text such as `2/4`.

        Raises:
            ValueError: for any other text.
        """
        match = _SHARD.fullmatch(text)
        if match is None or not int(match[1]) <= int(match[2]) <= _MOST_SHARDS:
            raise ValueError(f"expected SHARD/SHARDS, such as 2/4, got {text[:20]!r}")
        return cls(int(match[1]), int(match[2]))

    def __str__(self) -> str:
        return f"{self.number}/{self.total}"

    def holds(self, collection: str) -> bool:
        """Return whether the collection of this name falls to this shard."""
        return self.of(collection) == self

    def of(self, collection: str) -> "Shard":
        """Return the shard, out of the same number, to which a name falls."""
        digest = hashlib.sha256(collection.encode()).digest()
        return Shard(int.from_bytes(digest[:8], "big") % self.total + 1, self.total)

    def group(self, worker_id: str) -> str:
        """Return the consumer group of this shard's workers; of a single shard, the id itself."""
        return worker_id if self.total == 1 else f"{worker_id}.{self.number}-of-{self.total}"


def is_group(group_id: str, worker_id: str) -> bool:
    """Return whether a consumer group belongs to workers with this id, in any shard."""
    if group_id == worker_id:
        return True
    rest = group_id.removeprefix(f"{worker_id}.")
    return rest != group_id and _SHARD.fullmatch(rest.replace("-of-", "/")) is not None


def is_advertised(text: str) -> bool:
    """Return whether a text is the address of a worker: scheme, host and port, no path."""
    return _ADVERTISED.fullmatch(text) is not None and is_url(text)


def _name(value: str) -> str:
    if not _NAME.fullmatch(value) or value in {".", ".."} or value.startswith("__"):
        raise refused("letters, digits, dots, dashes and underscores (not '__' first)", value)
    if len(value) > _NAME_LENGTH:
        raise refused(f"at most {_NAME_LENGTH} characters", value)
    return value


def _advertised(value: str) -> str:
    if not is_advertised(value):
        raise refused('an address without a path, such as "http://worker-2:6066"', value)
    return value


Name = Annotated[str, AfterValidator(_name)]
"""What names of topics and groups may be made of."""


class WorkerConfig(ServingTable):
    """`[worker]`."""

    id: Name = Field(
        default="ldpstream",
        description="The consumer group: workers with the same id share partitions and state",
    )
    open_to_everybody: bool = Field(
        default=False, description="Serve any address of `http` without a token"
    )
    frame_ancestors: list[Annotated[str, AfterValidator(check_origin)]] = Field(
        default=[],
        description="Origins of web pages that may show `/?embed=1` in a frame; none by default",
        examples=[["https://intranet.example"]],
    )
    instance: Name | None = Field(
        default=None,
        description="This worker's unique name in its group, the same after a restart: its "
        "partitions wait 30 s for it; `LDPSTREAM_INSTANCE` overrides",
        examples=["worker-1"],
    )
    advertise: Annotated[str, AfterValidator(_advertised)] | None = Field(
        default=None,
        description="Where workers of other shards reach this one; `LDPSTREAM_ADVERTISE` overrides",
        examples=["http://worker-1:6066"],
    )
    data: PlacedFile = Field(
        default="./data",
        validate_default=True,
        description="Folder for the gateway's keys",
    )

    @property
    def addresses_topic(self) -> str:
        """The topic in which workers of all shards publish their addresses."""
        return f"{self.id}-workers"
