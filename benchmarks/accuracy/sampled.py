"""Errors of the shares of several attributes: sampled, split, and as one product domain.

    python -m benchmarks.accuracy.sampled

Every attribute has the given number of values, and every device the same epsilon.
Sampled: one report about one attribute. Split: a report about each, with its part of epsilon.
Product: one report about all combinations; their shares are added up.
"""

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.seeded import SeededEntropy

import ldpstream as ldp
from ldpstream.estimators.estimate import estimate_sets
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.families.subset.selection import SubsetSelection

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


def main() -> None:
    """Print a row for each way: the largest stated standard error, and the measured error."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--attributes", type=int, default=3)
    parser.add_argument("--values", type=int, default=10)
    parser.add_argument("--devices", type=int, default=10_000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--repetitions", type=int, default=20)
    asked = parser.parse_args()
    d, k = asked.attributes, asked.values
    ways: dict[str, Callable[[Integers, int], Floats]] = {
        "sampled": partial(_sampled, collection=_collection(d, k, asked.epsilon)),
        "split": partial(_split, mechanism=SubsetSelection(asked.epsilon / d, Blocks.one(k))),
        "product": partial(_product, mechanism=SubsetSelection(asked.epsilon, Blocks.one(k**d))),
    }
    print("| way | standard error, stated | measured |\n| --- | ---: | ---: |")
    for name, way in ways.items():
        stated, errors = [], []
        for seed in range(asked.repetitions):
            rng = np.random.default_rng(seed)
            values = np.minimum(*rng.integers(0, k, (2, d, asked.devices)))
            shares = np.stack([np.bincount(row, minlength=k) for row in values]) / asked.devices
            found = way(values, seed)
            stated.append(found[1].max())
            errors.append(found[0] - shares)
        measured = np.sqrt(np.mean(np.square(errors)))
        print(f"| {name} | {np.mean(stated):.4f} | {measured:.4f} |")


def _collection(d: int, k: int, epsilon: float) -> Any:
    attributes = {f"a{j}": {"size": k} for j in range(d)}
    return ldp.define_collection(
        "survey",
        mechanism="subset-selection",
        epsilon=epsilon,
        domain={"attributes": attributes},
        publish={"top": k},
    )


def _sampled(values: Integers, seed: int, *, collection: Any) -> Floats:
    columns = {f"a{j}": row for j, row in enumerate(values)}
    reports = ldp.privatize(collection, columns, entropy=SeededEntropy(seed))
    found = [one.to_columns() for one in ldp.estimate(reports, top="all").attributes]
    return np.array([[one[column] for one in found] for column in ("share", "se")])


def _split(values: Integers, seed: int, *, mechanism: SubsetSelection) -> Floats:
    sets = [np.array([x]) for x in range(mechanism.size)]
    each = [_estimated(mechanism, row, seed + 1000 * j, sets) for j, row in enumerate(values)]
    return np.stack(each, axis=1)


def _product(values: Integers, seed: int, *, mechanism: SubsetSelection) -> Floats:
    d = len(values)
    k = round(mechanism.size ** (1 / d))
    cells = np.ravel_multi_index(tuple(values), (k,) * d)
    places = np.stack(np.unravel_index(np.arange(mechanism.size), (k,) * d))
    sets = [np.flatnonzero(places[j] == x) for j in range(d) for x in range(k)]
    return _estimated(mechanism, cells, seed, sets).reshape(2, d, k)


def _estimated(
    mechanism: SubsetSelection, values: Integers, seed: int, sets: list[Integers]
) -> Floats:
    statistic = mechanism.empty()
    mechanism.accumulate(statistic, mechanism.privatize(values, entropy=SeededEntropy(seed)))
    found = estimate_sets(mechanism, statistic, len(values), sets)
    return np.stack([found.value, found.se])


if __name__ == "__main__":
    main()
