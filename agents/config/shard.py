"""Shards: a worker runs the collections whose names fall to its shard.

The shard of a name is the first eight bytes of its SHA-256, as a big-endian number, modulo the
number of shards. So shard i of n is the union of shards i and i + n of 2n: doubling the number
splits each shard in two.
"""

import hashlib
import re
from dataclasses import dataclass
from typing import Final

MOST_SHARDS: Final = 10_000
_ADVERTISED: Final = re.compile(r"https?://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(:[0-9]{1,5})?")
_TEXT: Final = re.compile(r"([1-9][0-9]{0,4})/([1-9][0-9]{0,4})")


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
        found = _TEXT.fullmatch(text)
        if found is None or not int(found[1]) <= int(found[2]) <= MOST_SHARDS:
            raise ValueError(f"expected SHARD/SHARDS, such as 2/4, got {text[:20]!r}")
        return cls(int(found[1]), int(found[2]))

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
    return rest != group_id and _TEXT.fullmatch(rest.replace("-of-", "/")) is not None


def is_advertised(text: str) -> bool:
    """Return whether a text is the address of a worker: scheme, host and port, no path."""
    return _ADVERTISED.fullmatch(text) is not None
