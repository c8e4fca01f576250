"""What HTTP and metrics need of a running pipeline: nothing but to look.

The pipeline of `ldpstream.agents.worker` fulfils these protocols; so does anything else that keeps
tails of a collection's changelog.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Protocol

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.context import Context
from ldpstream.agents.tail import Tail


class ServedCollection(Protocol):
    """One collection as one worker sees it."""

    @property
    def config(self) -> CollectionConfig:
        """The collection's configuration."""

    @property
    def context(self) -> Context:
        """What reading its records takes."""

    @property
    def tails(self) -> Sequence[Tail]:
        """The reader of every partition's changelog, by partition."""

    @property
    def owned(self) -> AbstractSet[int]:
        """The partitions assigned to this worker."""

    @property
    def end_offsets(self) -> Mapping[int, int]:
        """The source's end offsets last seen, by partition; a partition may be missing."""

    @property
    def ready(self) -> bool:
        """Whether every tail has been at its log's end."""

    @property
    def problems(self) -> Sequence[str]:
        """What keeps it from working, one sentence each; empty when all is well."""


class ServedPipeline(Protocol):
    """All collections of one worker."""

    @property
    def collections(self) -> Mapping[str, ServedCollection]:
        """The collections by name."""
