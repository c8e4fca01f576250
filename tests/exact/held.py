"""Specs with `hold`, and what they send: realised channels, and the reports of an epoch."""

import itertools
import math
from fractions import Fraction

from ldpstream.mechanisms import CollectionSpec
from tests.exact.wire.test_vectors import spec_of

Rows = list[list[Fraction]]
FAMILIES = {
    "randomized-response": "",
    "block-hadamard": "",
    "projective-geometry": "",
    "high-low": 'sensitive = ["bus", "walk"]\n',
}
THREE = 'domain = { values = ["bus", "train", "walk"] }'


def held(
    mechanism: str = "randomized-response",
    hold: str = "{ windows = 4, epsilon = 2.0 }",
    domain: str = THREE,
) -> CollectionSpec:
    extra = FAMILIES.get(mechanism, "") if domain == THREE else ""
    return spec_of(
        {
            "toml": f'[collection.modes]\nmechanism = "{mechanism}"\nepsilon = 1.0\n{domain}\n'
            f"{extra}hold = {hold}\n"
        }
    )


def matrix(spec: CollectionSpec, *, permanent: bool) -> Rows:
    """Return a realised channel, row by row."""
    mechanism = spec.hold.permanent if permanent else spec.mechanism
    channel = mechanism.channel()
    return [[row.get(y, Fraction(0)) for y in range(channel.outputs)] for row in channel.rows]


def again(spec: CollectionSpec) -> Rows:
    """Return M of a spec: the report again, or a uniform one of its block."""
    chain, outputs = spec.hold.chain, spec.mechanism.channel().outputs
    if chain is None:
        return [[Fraction(int(y == z)) for y in range(outputs)] for z in range(outputs)]
    rows = []
    for z in range(outputs):
        block = max(j for j, start in enumerate(chain.starts.tolist()) if start <= z)
        start, order = int(chain.starts[block]), int(chain.orders[block])
        keep = chain.keep(order)
        row = [Fraction(0)] * outputs
        for y in range(start, start + order):
            row[y] = (1 - keep) / order
        row[z] += keep
        rows.append(row)
    return rows


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
