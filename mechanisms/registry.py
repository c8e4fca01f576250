"""The mechanisms by their permanent ids: a new one is a file and a line here."""

from collections.abc import Mapping
from types import MappingProxyType

from ldpstream.mechanisms.binary import Binary
from ldpstream.mechanisms.block_hadamard import BlockHadamard
from ldpstream.mechanisms.checks import describe
from ldpstream.mechanisms.errors import SpecError
from ldpstream.mechanisms.high_low import HighLow
from ldpstream.mechanisms.l1_bits import L1Bits
from ldpstream.mechanisms.l1_geometric import L1Geometric
from ldpstream.mechanisms.lip import Lip
from ldpstream.mechanisms.matrix import Matrix
from ldpstream.mechanisms.mechanism import Mechanism
from ldpstream.mechanisms.optimal import Optimal
from ldpstream.mechanisms.projective_geometry import ProjectiveGeometry
from ldpstream.mechanisms.public_weights_kinds import (
    L1BitsPublicWeights,
    L1GeometricPublicWeights,
    asks_public,
)
from ldpstream.mechanisms.randomized_response import RandomizedResponse
from ldpstream.mechanisms.settings import Settings
from ldpstream.mechanisms.subset_selection import SubsetSelection

MECHANISMS: Mapping[str, type[Mechanism]] = MappingProxyType(
    {
        mechanism.id: mechanism
        for mechanism in (
            Binary,
            HighLow,
            BlockHadamard,
            RandomizedResponse,
            ProjectiveGeometry,
            SubsetSelection,
            L1Bits,
            L1Geometric,
            Lip,
            Optimal,
            Matrix,
        )
    }
)

PUBLIC_WEIGHTS: Mapping[str, type[Mechanism]] = MappingProxyType(
    {mechanism.id: mechanism for mechanism in (L1BitsPublicWeights, L1GeometricPublicWeights)}
)
"""Those that take public weights, in their form with weights."""


def check_id(given: object, path: str) -> str:
    """Return a mechanism's id; `path` is the collection's key path.

    Raises:
        SpecError: for an unknown one, and for none.
    """
    if not isinstance(given, str) or given not in MECHANISMS:
        known = ", ".join(sorted(MECHANISMS))
        raise SpecError(f"{path}.mechanism", f"one of {known}, got {describe(given)}")
    return given


def build(mechanism_id: object, settings: Settings) -> Mechanism:
    """Return the mechanism with this id, configured from a collection's keys.

    Raises:
        SpecError: for an unknown id, or whatever the mechanism refuses.
    """
    known_id = check_id(mechanism_id, settings.path)
    kind = MECHANISMS[known_id]
    if asks_public(settings):
        kind = PUBLIC_WEIGHTS.get(known_id, kind)
    return kind.configure(settings)
