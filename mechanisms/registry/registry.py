"""The mechanisms by permanent id; a new mechanism adds a file and a line here."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ldpstream.mechanisms.base.checks import describe
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.domains.atoms import Atoms
from ldpstream.mechanisms.families.binary import Binary
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from ldpstream.mechanisms.families.design.mechanism import RandomizedResponse
from ldpstream.mechanisms.families.design.projective_geometry import ProjectiveGeometry
from ldpstream.mechanisms.families.groups.high_low import HighLow
from ldpstream.mechanisms.families.groups.mechanism import Groups
from ldpstream.mechanisms.families.l1.bits import L1Bits
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from ldpstream.mechanisms.families.lip.lip import Lip
from ldpstream.mechanisms.families.matrix.matrix import Matrix
from ldpstream.mechanisms.families.optimal import Optimal
from ldpstream.mechanisms.families.sampled.sampled import Sampled
from ldpstream.mechanisms.families.subset.selection import SubsetSelection
from ldpstream.mechanisms.families.tree.tree import Tree
from ldpstream.mechanisms.families.weights.public import PublicWeights, asks_public
from ldpstream.mechanisms.interface.mechanism import Mechanism
from ldpstream.mechanisms.interface.settings import Settings
from ldpstream.mechanisms.policies.policy import BlockPolicy, Policy

MECHANISMS: Mapping[str, type[Mechanism]] = MappingProxyType(
    {
        mechanism.id: mechanism
        for mechanism in (
            Binary,
            HighLow,
            Groups,
            BlockHadamard,
            RandomizedResponse,
            ProjectiveGeometry,
            SubsetSelection,
            L1Bits,
            L1Geometric,
            Lip,
            Optimal,
            Matrix,
            Tree,
            Sampled,
        )
    }
)

WITHOUT_WEIGHTS: Final = frozenset({Lip.id, Matrix.id, Sampled.id})
"""The mechanisms that take no public weights.

`lip` and `sampled` have more than a value in a label, and squares times the sums of `matrix` might
overflow.
"""

REPORTING_ATOMS: Final = (
    BlockHadamard.id,
    RandomizedResponse.id,
    ProjectiveGeometry.id,
    SubsetSelection.id,
    Matrix.id,
    Optimal.id,
)
"""The mechanisms with which `workload` may be "published"."""
_ATOMS_NEED: Final = (
    'with the same budget for any two values (of a block), which workload = "published" needs'
)


def check_id(raw: object, path: str) -> str:
    """Return a mechanism's id; `path` is the collection's key path."""
    if not isinstance(raw, str) or raw not in MECHANISMS:
        known = ", ".join(sorted(MECHANISMS))
        raise SpecError(f"{path}.mechanism", f"one of {known}, got {describe(raw)}")
    return raw


def build(mechanism_id: object, settings: Settings) -> Mechanism:
    """Return the mechanism with this id, configured from a collection's keys.

    Raises:
        SpecError: if the id is unknown, or the mechanism refuses a key.
    """
    known_id = check_id(mechanism_id, settings.path)
    kind = MECHANISMS[known_id]
    on_atoms, weighted = isinstance(settings.domain, Atoms), asks_public(settings)
    if on_atoms and known_id not in REPORTING_ATOMS:
        what = f"one of {', '.join(REPORTING_ATOMS)}, {_ATOMS_NEED}, got {known_id}"
        raise SpecError(f"{settings.path}.mechanism", what)
    if weighted and known_id in WITHOUT_WEIGHTS:
        raise SpecError(f"{settings.path}.weights", f"no such key with {known_id}")
    if weighted and on_atoms:
        raise SpecError(f"{settings.path}.weights", 'none with workload = "published"')
    mechanism = PublicWeights.over(kind, settings) if weighted else kind.configure(settings)
    if on_atoms and not _is_uniform(mechanism.policy):
        raise SpecError(f"{settings.path}.channel", f"a channel {_ATOMS_NEED}")
    return mechanism


def _is_uniform(policy: Policy) -> bool:
    """Return whether values are in blocks, with one budget for any two of a block."""
    if isinstance(policy, BlockPolicy) or policy.by_entries() is not policy:
        return isinstance(policy, BlockPolicy)
    every = range(policy.size)
    budgets = [{z: policy.entry(x, z) for z in every if x != z} for x in every]
    joined = [
        {x, *(z for z, entry in row.items() if entry is not None)} for x, row in enumerate(budgets)
    ]
    finite = {entry for row in budgets for entry in row.values() if entry is not None}
    return len(finite) == 1 and all(joined[x] == joined[z] for x in every for z in joined[x])
