"""The addresses of workers of all shards, from the topic where they publish them."""

import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.config.worker import Shard, is_advertised

MISSED_RENEWALS: Final = 3
"""A worker is forgotten if this one renews its address this many times and the other does not."""

log = logging.getLogger(__name__)


@dataclass
class _Known:
    shard: Shard
    missed: int = 0


@dataclass(frozen=True)
class Elsewhere:
    """A collection of another shard as configured, and whether any worker answers for it."""

    config: CollectionConfig
    shard: Shard
    ready: bool

    @property
    def accepted(self) -> "tuple[Elsewhere, ...]":
        """The same, under the specs that it accepts."""
        return tuple(Elsewhere(one, self.shard, self.ready) for one in self.config.accept)

    @property
    def problem(self) -> str:
        """What to say if no worker answers."""
        return f"{self.config.name}: shard {self.shard} has no worker that answers"


@dataclass(frozen=True)
class Shards:
    """One worker's shard and address, all collections, and the addresses of other workers.

    Ages are counted in this worker's own renewals on the same topic. So no clocks are compared, and
    while the broker is away no worker is forgotten.
    """

    own: Shard
    address: str
    collections: Mapping[str, CollectionConfig]
    _known: dict[str, _Known] = field(default_factory=dict)

    def record(self) -> tuple[bytes, bytes]:
        """Return the key and value by which this worker publishes its shard and address."""
        return self.address.encode(), json.dumps({"shard": str(self.own)}).encode()

    def read(self, key: bytes | None, value: bytes | None) -> None:
        """Read a record of the topic; ignore what is not an address."""
        address = (key or b"").decode(errors="replace")
        if address == self.address:
            self._age()
        elif value is None:
            self._known.pop(address, None)
        elif (shard := _read_shard(value)) is None or not self._may_learn_tokens(address):
            log.warning("ignored a worker's address that is invalid or not HTTPS")
        else:
            self._known[address] = _Known(shard)

    def _age(self) -> None:
        for address, one in list(self._known.items()):
            one.missed += 1
            if one.missed >= MISSED_RENEWALS:
                del self._known[address]

    def _may_learn_tokens(self, address: str) -> bool:
        """Return whether readers' tokens may be sent there: it is as secure as this worker."""
        return is_advertised(address) and address.startswith(("https:", self.address.split("/")[0]))

    def elsewhere(self, name: str) -> bool:
        """Return whether a configured collection is of another shard."""
        return name in self.collections and not self.own.holds(name)

    def addresses(self, name: str) -> list[str]:
        """Return the addresses of workers that run a collection, in an order of this worker's own.

        So each worker sticks to one of them, and different workers to different ones.
        """
        found = [address for address, one in self._known.items() if one.shard.holds(name)]
        return sorted(found, key=self._rank)

    def remote_collections(self) -> dict[str, Elsewhere]:
        """Return all collections of other shards."""
        return {
            name: Elsewhere(config, self.own.of(name), bool(self.addresses(name)))
            for name, config in self.collections.items()
            if self.elsewhere(name)
        }

    def _rank(self, address: str) -> bytes:
        return hashlib.sha256(f"{self.address} {address}".encode()).digest()


def _read_shard(value: bytes) -> Shard | None:
    try:
        return Shard.parse(json.loads(value)["shard"])
    except (ValueError, TypeError, LookupError):
        return None
