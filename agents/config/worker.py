"""`[worker]`: a worker's group, its address, and where it keeps its state."""

import re
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field

from ldpstream.agents.config.serving import PlacedFile, ServingTable
from ldpstream.agents.config.shard import is_advertised
from ldpstream.agents.query.errors import refused

_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")
_NAME_LENGTH: Final = 200  # Kafka allows 249 characters in a topic, and suffixes are added to this


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
    store: Literal["memory", "rocksdb"] = Field(
        default="memory", description="Where to keep replicas of the state"
    )
    data: PlacedFile = Field(
        default="./data",
        validate_default=True,
        description="Folder for the store and the gateway's keys",
    )

    @property
    def pack_group(self) -> str:
        """The consumer group of all packers."""
        return f"{self.id}.pack"

    @property
    def addresses_topic(self) -> str:
        """The topic in which workers of all shards publish their addresses."""
        return f"{self.id}-workers"
