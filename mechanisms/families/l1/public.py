"""`l1-bits` and `l1-geometric` with public weights."""

from typing import ClassVar

from ldpstream.mechanisms.families.l1.bits import L1Bits
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from ldpstream.mechanisms.families.weights.public import PublicWeights
from ldpstream.mechanisms.interface.settings import Settings


class L1BitsPublicWeights(PublicWeights):
    """`l1-bits` with public weights."""

    id: ClassVar[str] = L1Bits.id

    @classmethod
    def configure_values(cls, settings: Settings) -> L1Bits:
        return L1Bits.configure(settings)


class L1GeometricPublicWeights(PublicWeights):
    """`l1-geometric` with public weights."""

    id: ClassVar[str] = L1Geometric.id

    @classmethod
    def configure_values(cls, settings: Settings) -> L1Geometric:
        return L1Geometric.configure(settings)


def asks_public(settings: Settings) -> bool:
    """Return whether a collection's weights are public."""
    weights = settings.keys.get("weights")
    return isinstance(weights, dict) and "public" in weights
