"""Pairs of attributes, `domain.pairs = [[NAME, NAME], ...]`, as further attributes.

A pair protects two of its values by the smaller epsilon of its attributes, unless one of them
discloses the difference. For two records it therefore loses no more than an attribute in which they
differ, and the joint policy stays the largest of the attributes' policies.
"""

from collections.abc import Mapping
from typing import Final

from ldpstream.mechanisms.base.checks import describe
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.domains.base import Domain
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.domains.pair import Pair
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from ldpstream.mechanisms.families.block.mechanism import BlockMechanism
from ldpstream.mechanisms.families.design.projective_geometry import ProjectiveGeometry
from ldpstream.mechanisms.families.design.randomized_response import RandomizedResponse
from ldpstream.mechanisms.families.subset.selection import SubsetSelection
from ldpstream.mechanisms.interface.mechanism import Mechanism
from ldpstream.mechanisms.policies.policy import BlockPolicy

_KINDS: Final[Mapping[object, type[BlockMechanism]]] = {
    kind.id: kind for kind in (BlockHadamard, RandomizedResponse, SubsetSelection)
}

Known = Mapping[str, tuple[Domain, Mechanism]]


def read_pairs(
    given: object, known: Known, *, mechanism: object, path: str
) -> dict[str, tuple[Domain, Mechanism]]:
    """Return pairs of known attributes, as attributes with the names `FIRST:SECOND`.

    They are reported by the collection's `mechanism` if that is `block-hadamard`,
    `randomized-response` or `subset-selection`, and otherwise by `projective-geometry`.

    Raises:
        SpecError: naming the pair and what was expected.
    """
    if not isinstance(given, list) or not given:
        raise SpecError(path, f"a list of pairs [NAME, NAME], got {describe(given)}")
    found: dict[str, tuple[Domain, Mechanism]] = {}
    for number, names in enumerate(given):
        where = f"{path}[{number}]"
        pair = _pair(names, known, where)
        if {pair.name, ":".join(reversed(pair.names))} & found.keys():
            raise SpecError(where, f"each pair once, got {pair.name} again")
        kind = _KINDS.get(mechanism, ProjectiveGeometry)
        first, second = (_policy(name, known[name][1], where) for name in pair.names)
        try:
            own = kind(min(first.epsilon, second.epsilon), _product(first.blocks, second.blocks))
        except SpecError as error:
            raise SpecError(where, error.expected) from None
        found[pair.name] = pair, own
    return found


def _pair(given: object, known: Known, path: str) -> Pair:
    names = given if isinstance(given, list) else []
    texts = [name for name in names if isinstance(name, str) and name in known]
    if len(names) != 2 or texts != names:
        what = f"two of the attributes {', '.join(known)}"
        got = next((name for name in names if name not in texts), given)
        raise SpecError(path, f"{what}, got {describe(got)}")
    first, second = texts
    if first == second:
        raise SpecError(path, f"two different attributes, got {first} twice")
    try:
        return Pair((first, second), (known[first][0], known[second][0]))
    except SpecError as error:
        raise SpecError(path, error.expected) from None


def _policy(name: str, part: Mechanism, path: str) -> BlockPolicy:
    policy = part.policy
    if not isinstance(policy, BlockPolicy):
        raise SpecError(
            path,
            "attributes with one epsilon for any two values (of a block), such as "
            f"randomized-response or subset-selection keep it; {name} has {part.id}",
        )
    return policy


def _product(first: Blocks, second: Blocks) -> Blocks:
    """Return the blocks of combinations, which agree in the blocks of both attributes."""
    return Blocks((first.of_value[:, None] * second.count + second.of_value).ravel())
