"""Specs with `hold`, and what they send: realised channels, and the reports of an epoch."""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from ldpstream.mechanisms import CollectionSpec
from ldpstream.mechanisms.families.groups.base import GroupMechanism
from ldpstream.mechanisms.families.groups.chain import GroupChain
from ldpstream.mechanisms.families.l1.bits import BitChain
from ldpstream.mechanisms.families.l1.geometric import GeometricChain, L1Geometric
from ldpstream.mechanisms.families.subset.selection import SubsetChain
from ldpstream.mechanisms.interface.chain import BlockChain, MixtureChain
from tests.exact.enumeration import Rows, rows_of
from tests.exact.wire.test_vectors import spec_of

THREE = 'domain = { values = ["bus", "train", "walk"] }'
ORDERED = "domain = { size = 3 }"
FAMILIES = {
    "randomized-response": THREE,
    "block-hadamard": THREE,
    "projective-geometry": THREE,
    "high-low": f'{THREE}\nsensitive = ["bus", "walk"]',
    "groups": f'{THREE}\nsensitive = ["bus", "walk"]',
    "groups subsets": "domain = { size = 5 }\nsensitive = [0, 1, 3, 4]\nshare = 0.0",
    "groups lists": "domain = { size = 4 }\nsensitive = [[0, 1], [2]]",
    "groups nested": "domain = { size = 4, blocks = [[0, 1], [2, 3]] }\nepsilon_outside = 1.0",
    "groups blocks": "domain = { size = 4, blocks = [[0, 1], [2, 3]] }",
    "subset-selection": THREE,
    "binary": "domain = { size = 2 }",
    "optimal": f'{ORDERED}\nchannel = "channels/asymmetric.json"',
    "l1-bits": ORDERED,
    "l1-geometric": ORDERED,
    "tree": ORDERED,
}
"""Mechanisms whose reports are randomised again, with a domain of few values."""
EPSILON = {
    "binary": "[1.0, 0.6]",
    "optimal": None,
    "groups lists": "[1.0, 0.5]",
    "groups nested": "0.4",
    "groups blocks": "[0.5, 1.0]",
}
PERMANENT = {"binary": "[2.0, 1.5]"}


def held(
    mechanism: str = "randomized-response",
    hold: str = "{ windows = 4, epsilon = 2.0 }",
    domain: str | None = None,
) -> CollectionSpec:
    epsilon = EPSILON.get(mechanism, "1.0")
    hold = hold.replace("= 2.0 }", f"= {PERMANENT.get(mechanism, '2.0')} }}")
    return spec_of(
        {
            "toml": f'[collection.modes]\nmechanism = "{mechanism.split()[0]}"\n'
            + (f"epsilon = {epsilon}\n" if epsilon else "")
            + f"{domain or FAMILIES.get(mechanism, THREE)}\nhold = {hold}\n"
        }
    )


def matrix(spec: CollectionSpec, *, permanent: bool) -> Rows:
    """Return a realised channel, row by row."""
    return rows_of(spec.hold.permanent if permanent else spec.mechanism)


def again(spec: CollectionSpec) -> Rows:
    """Return M of a spec: the channel by which docs/wire.md draws a report again."""
    chain, outputs = spec.hold.chain, range(spec.mechanism.channel().outputs)
    if chain is None:
        return [[Fraction(int(y == z)) for y in outputs] for z in outputs]
    if isinstance(chain, MixtureChain):
        return [_kept(z, chain.keep, chain.others) for z in outputs]
    if isinstance(chain, BitChain):
        flips = [[int(y ^ z).bit_count() for y in outputs] for z in outputs]
        bits, stay = spec.mechanism.report_bits, chain.stay
        return [[stay ** (bits - n) * (1 - stay) ** n for n in row] for row in flips]
    if isinstance(chain, GeometricChain):
        return moved(chain, spec.mechanism.epsilon)
    if isinstance(chain, GroupChain):
        return _grouped(spec.mechanism, chain)
    if isinstance(chain, SubsetChain):
        blocks = chain.layout.block_of(spec.mechanism.possible_reports()).tolist()
        return [
            _kept(z, *_uniform(chain, [block == blocks[z] for block in blocks])) for z in outputs
        ]
    rows = []
    for z in outputs:
        block = int(np.searchsorted(chain.starts, z, side="right")) - 1
        places = np.arange(chain.orders[block]) + chain.starts[block]
        rows.append(_kept(z, *_uniform(chain, [y in places for y in outputs])))
    return rows


def _grouped(mechanism: GroupMechanism, chain: GroupChain) -> Rows:
    """Return M by docs/wire.md, from the fractions of `keep` and the groups of all reports."""
    keep = [*chain.canonical()]
    kind_of, several = mechanism.thresholds.kind_of.tolist(), "kinds" in mechanism.parameters()
    remain, *stay = map(Fraction, keep if several else [keep[0][1]])
    of = mechanism.group_of(mechanism.possible_reports()).tolist()
    order = [of.count(group) for group in of]
    blanket = mechanism.thresholds.blanket_shares()
    rows = []
    for z, group in enumerate(of):
        stays = stay[kind_of[group]] if several else Fraction(1)
        rest = [
            (1 - remain) * blanket.get(other, Fraction(0)) / order[y]
            + remain * (1 - stays) / order[y] * (other == group)
            for y, other in enumerate(of)
        ]
        rows.append(_kept(z, remain * stays, rest))
    return rows


def _uniform(
    chain: BlockChain | SubsetChain, inside: list[bool]
) -> tuple[Fraction, list[Fraction]]:
    """Return the probability to stay, and those of a uniform report of a block otherwise."""
    order = sum(inside)
    of_order = {blend.order: blend.keep for blend in chain.blends.values()}
    keep = of_order[order] if order > 1 else Fraction(1)
    return keep, [(1 - keep) / order if there else Fraction(0) for there in inside]


def _kept(z: int, keep: Fraction, others: Sequence[Fraction]) -> list[Fraction]:
    return [other + keep * (y == z) for y, other in enumerate(others)]


def moved(chain: GeometricChain, epsilon: float) -> Rows:
    """Return the product over the axes of what moves a coordinate again."""
    axes = []
    for length in chain.extents:
        rows = L1Geometric(epsilon, (length,)).channel().rows
        keeps = [chain.keep[z in (0, length - 1)] for z in range(length)]
        axes.append(
            [
                _kept(z, keep, [(1 - keep) * rows[z][y] for y in range(length)])
                for z, keep in enumerate(keeps)
            ]
        )
    return [[math.prod(p) for p in itertools.product(*rows)] for rows in itertools.product(*axes)]


def of_epoch(first: Rows, second: Rows, reports: int) -> list[dict[tuple[int, ...], Fraction]]:
    """Return the distribution of m reports of one epoch, for each value."""
    outputs = range(len(second))
    sent = {
        z: {
            ys: math.prod((second[z][y] for y in ys), start=Fraction(1))
            for ys in itertools.product(outputs, repeat=reports)
        }
        for z in outputs
    }
    return [
        {
            ys: sum((p * sent[z][ys] for z, p in enumerate(row) if p), Fraction(0))
            for ys in itertools.product(outputs, repeat=reports)
        }
        for row in first
    ]
