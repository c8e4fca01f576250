"""Collections of records: `domain = { attributes = { NAME = { ... } } }`.

The table of an attribute holds the keys of its domain and of its mechanism. If it names no
mechanism, it takes the collection's with the collection's keys.

Pairs, `domain.pairs = [[NAME, NAME], ...]`, become further attributes. A pair protects two of its
values by the smaller epsilon of its attributes, unless one of them discloses the difference. For
two records it therefore loses no more than an attribute in which they differ, and the joint policy
stays the largest of the attributes' policies.
"""

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Final

import numpy as np

from ldpstream.mechanisms.base.checks import check_keys, describe
from ldpstream.mechanisms.base.errors import SpecError, within
from ldpstream.mechanisms.domains.attributes import Attributes, Pair
from ldpstream.mechanisms.domains.base import Domain
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.domains.parse import DOMAIN_KEYS, OF_RECORDS, parse_domain
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from ldpstream.mechanisms.families.block.mechanism import BlockMechanism
from ldpstream.mechanisms.families.design.mechanism import RandomizedResponse
from ldpstream.mechanisms.families.design.projective_geometry import ProjectiveGeometry
from ldpstream.mechanisms.families.sampled.sampled import MOST_ATTRIBUTES, Sampled
from ldpstream.mechanisms.families.subset.selection import SubsetSelection
from ldpstream.mechanisms.interface.mechanism import Mechanism
from ldpstream.mechanisms.interface.settings import MECHANISM_KEYS, Settings
from ldpstream.mechanisms.policies.policy import BlockPolicy
from ldpstream.mechanisms.registry.registry import build

ATTRIBUTE_KEYS: Final[Mapping[str, str]] = {
    "mechanism": "The attribute's mechanism, if not the collection's; then only its own keys apply",
    "probability": "The probability that a report is about the attribute; by default all have the "
    "same largest error. The rest up to 1 goes to the pairs",
}
"""The keys of an attribute's table besides those of a domain and a mechanism."""
_PAIR_MECHANISMS: Final[Mapping[object, type[BlockMechanism]]] = {
    kind.id: kind for kind in (BlockHadamard, RandomizedResponse, SubsetSelection)
}

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_DIGITS: Final = 3
"""Digits of a default weight, few enough to be the same on every machine."""
_SUM: Final = Fraction(1, 1000)
"""How far the sum of configured probabilities may be from 1."""

_Known = Mapping[str, tuple[Domain, Mechanism]]


def has_attributes(domain: object) -> bool:
    """Return whether a `domain` table describes records."""
    return isinstance(domain, dict) and "attributes" in domain


def build_attributes(
    mapping: Mapping[str, object], *, path: str, base: Path
) -> tuple[Attributes, Sampled]:
    """Return the domain and the mechanism of a collection's table whose domain has attributes.

    `path` is the collection's key path; files are relative to `base`.
    """
    where = f"{path}.domain"
    keys = check_keys(mapping["domain"], frozenset({"attributes", "pairs"}), where)
    tables, where = keys["attributes"], f"{where}.attributes"
    if not isinstance(tables, dict) or not 2 <= len(tables) <= MOST_ATTRIBUTES:
        got = f"{len(tables)} of them" if isinstance(tables, dict) else describe(tables)
        raise SpecError(where, f"2 to {MOST_ATTRIBUTES} tables by name, got {got}")
    if isinstance(tables.get("pairs"), list):
        what = "a table; pairs of attributes are named in domain.pairs"
        raise SpecError(f"{where}.pairs", f"{what}, got {describe(tables['pairs'])}")
    known = {
        name: _read(name, table, mapping, path=f"{where}.{name}", base=base)
        for name, table in tables.items()
    }
    if "pairs" in keys:
        shared = mapping.get("mechanism")
        known |= _read_pairs(keys["pairs"], known, mechanism=shared, path=f"{path}.domain.pairs")
    if len(known) > MOST_ATTRIBUTES:
        what = f"at most {MOST_ATTRIBUTES} attributes and pairs together, got {len(known)}"
        raise SpecError(f"{path}.domain.pairs", what)
    names, domains = tuple(known), tuple(domain for domain, _ in known.values())
    mechanisms = tuple(mechanism for _, mechanism in known.values())
    configured = {name: table.get("probability") for name, table in tables.items()}
    probabilities = _units(_weights(configured, mechanisms, where))
    with within(f"{path}.domain"):
        domain = Attributes(names, domains, probabilities)
    return domain, Sampled(names, mechanisms, probabilities)


def _read(
    name: str, raw: object, collection: Mapping[str, object], *, path: str, base: Path
) -> tuple[Domain, Mechanism]:
    if not _NAME.fullmatch(name):
        raise SpecError(path, "a name of at most 64 letters, digits, '_' and '-'")
    if not isinstance(raw, dict):
        raise SpecError(path, f"a table, of its domain and what differs, got {describe(raw)}")
    if "attributes" in raw:
        raise SpecError(f"{path}.attributes", "no attributes inside an attribute")
    known = {*DOMAIN_KEYS, *MECHANISM_KEYS, *ATTRIBUTE_KEYS} - OF_RECORDS
    table = check_keys(raw, frozenset(known), path)
    keys = {key: table[key] for key in MECHANISM_KEYS if key in table}
    if "mechanism" not in table:
        keys = {key: collection[key] for key in MECHANISM_KEYS if key in collection} | keys
    of_domain = {key: table[key] for key in DOMAIN_KEYS if key in table}
    domain, blocks = parse_domain(of_domain, path=path, base=base)
    mechanism = table.get("mechanism", collection.get("mechanism"))
    if mechanism == Sampled.id:
        raise SpecError(f"{path}.mechanism", "a mechanism of this attribute's own, not sampled")
    settings = Settings(path=path, domain=domain, blocks=blocks, keys=keys, base=base)
    settings = settings.merged(_published(collection, name))
    try:
        attribute_mechanism = build(mechanism, settings)
    except SpecError as error:
        # The keys of an attribute's domain are in the attribute's own table.
        raise SpecError(error.path.replace(f"{path}.domain", path), error.expected) from None
    if attribute_mechanism.unanswered(None) is not None:
        what = "rows that answer every single value, which an attribute of records needs"
        raise SpecError(f"{path}.strategy", what)
    if "weights" in keys:
        raise SpecError(f"{path}.weights", "no weights with attributes")
    policy = attribute_mechanism.policy
    if policy.by_entries() is not policy:
        what = "a mechanism whose budgets are of pairs of values: priors have no joint policy"
        raise SpecError(f"{path}.mechanism", f"{what}, got {describe(attribute_mechanism.id)}")
    return attribute_mechanism.report_domain(settings.domain), attribute_mechanism


def _published(collection: Mapping[str, object], name: str) -> object:
    """Return what `publish.attributes` says of an attribute."""
    publish = collection.get("publish")
    attributes = publish.get("attributes") if isinstance(publish, dict) else None
    return attributes.get(name) if isinstance(attributes, dict) else None


def _read_pairs(
    raw: object, known: _Known, *, mechanism: object, path: str
) -> dict[str, tuple[Domain, Mechanism]]:
    """Return pairs of known attributes, as attributes with the names `FIRST:SECOND`.

    They are reported by the collection's `mechanism` if that is `block-hadamard`,
    `randomized-response` or `subset-selection`, and otherwise by `projective-geometry`.
    """
    if not isinstance(raw, list) or not raw:
        raise SpecError(path, f"a list of pairs [NAME, NAME], got {describe(raw)}")
    pairs: dict[str, tuple[Domain, Mechanism]] = {}
    for number, names in enumerate(raw):
        where = f"{path}[{number}]"
        pair = _read_pair(names, known, where)
        if {pair.name, ":".join(reversed(pair.names))} & pairs.keys():
            raise SpecError(where, f"each pair once, got {pair.name} again")
        kind = _PAIR_MECHANISMS.get(mechanism, ProjectiveGeometry)
        first, second = (_block_policy(name, known[name][1], where) for name in pair.names)
        # Combinations of one block agree in the blocks of both attributes.
        of_both = first.blocks.of_value[:, None] * second.blocks.count + second.blocks.of_value
        try:
            pair_mechanism = kind(min(first.epsilon, second.epsilon), Blocks(of_both.ravel()))
        except SpecError as error:
            raise SpecError(where, error.expected) from None
        pairs[pair.name] = pair, pair_mechanism
    return pairs


def _read_pair(raw: object, known: _Known, path: str) -> Pair:
    names = raw if isinstance(raw, list) else []
    texts = [name for name in names if isinstance(name, str) and name in known]
    if len(names) != 2 or texts != names:
        what = f"two of the attributes {', '.join(known)}"
        got = next((name for name in names if name not in texts), raw)
        raise SpecError(path, f"{what}, got {describe(got)}")
    first, second = texts
    if first == second:
        raise SpecError(path, f"two different attributes, got {first} twice")
    try:
        return Pair((first, second), (known[first][0], known[second][0]))
    except SpecError as error:
        raise SpecError(path, error.expected) from None


def _block_policy(name: str, mechanism: Mechanism, path: str) -> BlockPolicy:
    policy = mechanism.policy
    if not isinstance(policy, BlockPolicy):
        raise SpecError(
            path,
            "attributes with one epsilon for any two values (of a block), such as "
            f"randomized-response or subset-selection keep it; {name} has {mechanism.id}",
        )
    return policy


def _weights(
    probabilities: Mapping[str, object], mechanisms: Sequence[Mechanism], path: str
) -> list[Fraction]:
    """Return the proportions with which attributes, and after them pairs, are drawn.

    `probabilities` holds the configured probabilities of attributes.
    """
    default = default_weights(mechanisms)
    if all(probability is None for probability in probabilities.values()):
        return default
    weights = []
    for name, probability in probabilities.items():
        if (
            isinstance(probability, bool)
            or not isinstance(probability, int | float)
            or not 0 < probability < 1
        ):
            got = "none" if probability is None else describe(probability)
            what = f"a number above 0 and below 1 for each attribute or none, got {got}"
            raise SpecError(f"{path}.{name}.probability", what)
        weights.append(Fraction(str(probability)))
    total, pairs = sum(weights, Fraction(0)), default[len(weights) :]
    if (pairs and total > 1 - _SUM) or (not pairs and abs(total - 1) > _SUM):
        sums = "a sum below 1, of which pairs have the rest" if pairs else "sum 1"
        what = f"probabilities with {sums}, got {float(total):g}"
        raise SpecError(f"{path}.{next(iter(probabilities))}.probability", what)
    return weights + [(1 - total) * probability / sum(pairs) for probability in pairs]


def default_weights(mechanisms: Sequence[Mechanism]) -> list[Fraction]:
    """Return the proportions with which attributes are drawn by default.

    They give all attributes the same largest error. With n reports the variance is `v/(n q)`, where
    v is the largest noise that a report adds to a share of the attribute, plus at most 1/4 for the
    sampling of respondents. It is the same for all attributes if `q ~ v`.
    """
    return [Fraction(f"{worst_variance(mechanism):.{_DIGITS - 1}e}") for mechanism in mechanisms]


def worst_variance(mechanism: Mechanism) -> float:
    """Return the largest variance that a report of an attribute adds to a single value."""
    return float(np.max(mechanism.decoder.noise_extremes()[1])) + 0.25


def _units(weights: Sequence[Fraction]) -> tuple[int, ...]:
    """Return weights as probabilities in units of 2^-64, at least one each, with sum 1."""
    total = sum(weights)
    units = [max(1, int(weight / total * WORD)) for weight in weights]
    units[units.index(max(units))] += WORD - sum(units)
    return tuple(units)
