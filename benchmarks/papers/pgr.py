"""Projective geometry response and subset selection, compared with published errors.

    python -m benchmarks.papers.pgr PATH

Reads the figures that Feldman, Nelson, Nguyen and Talwar published for *Private Frequency
Estimation via Projective Geometry* (2022) and prints, for each of their figures for SS and PG, the
error predicted exactly and measured in their setting (a space over the first prime from `e^eps + 1`
on, with the fewest coordinates, at least three), and predicted for `projective-geometry`'s space.
The error is the mean over all values of the squared error of a count; its expectation does not
depend on how the n users are spread over the k values.

A published figure is the mean of a number of trials: `z` is its distance from the prediction in
standard errors, with the standard deviation of a trial as measured here. Trials are repeated until
the measured mean is known to 1%, at least 30 and at most `--repetitions` times.
"""

import argparse
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.seeded import SeededEntropy

from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.exact.dyadic import budget
from ldpstream.mechanisms.exact.entropy import Entropy
from ldpstream.mechanisms.families.design.design import Support
from ldpstream.mechanisms.families.design.geometry_transform import Geometry
from ldpstream.mechanisms.families.design.projective_geometry import (
    ProjectiveGeometry,
    choose_geometry,
    hyperplane_design,
)
from ldpstream.mechanisms.families.subset.subsets import best_subsets, draw_subsets

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Estimator = Callable[[Integers, Entropy], Floats]

FEWEST_TRIALS = 30
NAMES = {"SS": "subset-selection", "PG": "projective-geometry"}


@dataclass(frozen=True)
class Published:
    """One published figure: the mean over `trials` of the mean squared error of a count."""

    data: str
    mechanism: str
    k: int
    n: int
    epsilon: float
    error: float
    trials: int


class PublishedSpace(ProjectiveGeometry):
    """Projective geometry response in the paper's space."""

    def geometry(self, size: int) -> Geometry:
        """Return the paper's space for a block of this many values."""
        return published_space(self.epsilon, size)


def published_space(epsilon: float, size: int) -> Geometry:
    """Return the space of the first prime from `e^eps + 1` on, with three coordinates or more."""
    q = math.ceil(math.exp(epsilon) + 1)
    while any(q % divisor == 0 for divisor in range(2, math.isqrt(q) + 1)):
        q += 1
    t = 3
    while Geometry(q, t).points < size:
        t += 1
    return Geometry(q, t)


def read(document: dict[str, Any]) -> Iterator[Published]:
    """Yield the published mean squared errors, each repeated set of results once."""
    seen: set[str] = set()
    for name, entry in document.items():
        data, kind = name.rsplit(".", 1)
        results, params = entry["results"], entry["params"]
        text = json.dumps(results)
        if kind not in ("mse", "var") or text in seen:
            continue
        seen.add(text)
        n, k = int(params["num-users"]), int(params["universe-size"])
        for mechanism in ("SS", "PG"):
            if kind == "mse" and mechanism in results:
                figure = results[mechanism]
                epsilon, trials = float(params["epsilon"]), figure["n"]
                yield Published(data, mechanism, k, n, epsilon, figure["mean"], trials)
            elif mechanism in results:
                ends = float(params["var-epsilon-min"]), float(params["var-epsilon-max"])
                steps = np.linspace(*ends, int(params["num-var-epsilons"])).tolist()
                trials = int(params["variance-repetitions"])
                # The published file has six digits of epsilon.
                for epsilon, (_, error) in zip(steps, results[mechanism], strict=True):
                    yield Published(data, mechanism, k, n, epsilon, error, trials)


def users(data: str, k: int, n: int, rng: np.random.Generator) -> Integers:
    """Return n values: all one ("spike"), uniform over some ("junta"), or Zipf's."""
    if data.startswith("spike"):
        return np.zeros(n, dtype=np.int64)
    if data.startswith("junta"):
        return rng.integers(0, min(k, int(data.removeprefix("junta"))), n)
    weights = np.arange(1, k + 1) ** -float(data.removeprefix("zipf"))
    return rng.choice(k, n, p=weights / weights.sum())


def support_of(figure: Published) -> Support:
    """Return the channel in the published setting."""
    if figure.mechanism == "SS":
        return best_subsets(budget(figure.epsilon), figure.k).support
    space = published_space(figure.epsilon, figure.k)
    return hyperplane_design(budget(figure.epsilon), space).support


def our_space(figure: Published) -> tuple[Geometry, float]:
    """Return the space that `projective-geometry` takes, and its predicted error."""
    space = choose_geometry(budget(figure.epsilon), figure.k)
    support = hyperplane_design(budget(figure.epsilon), space).support
    return space, figure.n * float(support.mean_noise(figure.k))


def estimator(figure: Published) -> Estimator:
    """Return a function that privatizes and estimates all k counts with the mechanisms' parts."""
    blocks = Blocks.one(figure.k)
    if figure.mechanism == "PG":
        mechanism = PublishedSpace(figure.epsilon, blocks)

        def points(values: Integers, entropy: Entropy) -> Floats:
            statistic = mechanism.empty()
            mechanism.accumulate(statistic, mechanism.privatize(values, entropy=entropy))
            return mechanism.decoder.totals(statistic)

        return points
    # `SubsetSelection` refuses blocks as large as these; the draws are the same.
    subsets = best_subsets(budget(figure.epsilon), figure.k)
    low, step = float(subsets.support.low), float(1 / subsets.support.gap)

    def masks(values: Integers, entropy: Entropy) -> Floats:
        wanted = entropy.words(len(values)) < np.uint64(subsets.threshold)
        held = np.zeros(figure.k, dtype=np.int64)
        for first in range(0, len(values), 256):
            part = slice(first, first + 256)
            held += draw_subsets(entropy, subsets, values[part], wanted[part]).sum(axis=0)
        return np.asarray(step * held + low * len(values), dtype=np.float64)

    return masks


def measure(figure: Published, *, seed: int, most: int) -> Floats:
    """Return the errors of trials, until their mean is known to 1%: float64 `(trials,)`."""
    rng, entropy = np.random.default_rng(seed), SeededEntropy(seed)
    estimate = estimator(figure)
    errors: list[float] = []
    while len(errors) < most:
        values = users(figure.data, figure.k, figure.n, rng)
        truth = np.bincount(values, minlength=figure.k)
        errors.append(float(((estimate(values, entropy) - truth) ** 2).mean()))
        if len(errors) < FEWEST_TRIALS:
            continue
        if np.std(errors, ddof=1) < 0.01 * np.mean(errors) * math.sqrt(len(errors)):
            break
    return np.array(errors)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers.pgr")
    parser.add_argument("path", type=Path, help="the published figures, JSON")
    parser.add_argument("--only", nargs="*", help="data sets, such as spike1 zipf1.0")
    parser.add_argument("--repetitions", type=int, default=300, help="most trials of a figure")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    figures = list(read(json.loads(options.path.read_text("utf-8"))))
    print(
        f"{'data':10}{'mechanism':21}{'k':>6}{'n':>7}{'eps':>7}{'published':>11}{'predicted':>11}"
        f"{'measured':>11}{'+-':>7}{'trials':>7}{'pub/pred':>9}{'z':>7}  ours (q, t): predicted"
    )
    apart, worst_measured = 0, 0.0
    chosen = [f for f in figures if not options.only or f.data in options.only]
    for figure in chosen:
        predicted = figure.n * float(support_of(figure).mean_noise(figure.k))
        errors = measure(figure, seed=options.seed, most=options.repetitions)
        spread, mean = float(errors.std(ddof=1)), float(errors.mean())
        z = (figure.error - predicted) / (spread / math.sqrt(figure.trials))
        ours = ""
        if figure.mechanism == "PG":
            space, error = our_space(figure)
            ours = f"  ({space.q}, {space.dimension}): {error:.2f}"
        print(
            f"{figure.data:10}{NAMES[figure.mechanism]:21}{figure.k:6}{figure.n:7}"
            f"{figure.epsilon:7.3f}{figure.error:11.2f}{predicted:11.2f}{mean:11.2f}"
            f"{spread / math.sqrt(len(errors)):7.2f}{len(errors):7}"
            f"{figure.error / predicted:9.4f}{z:7.1f}{ours}",
            flush=True,
        )
        apart += abs(figure.error / mean - 1) > 0.05
        worst_measured = max(worst_measured, abs(mean / predicted - 1))
    print(
        f"{apart} of {len(chosen)} published figures are more than 5% from the measured ones; "
        f"measured ones are within {worst_measured:.1%} of the predicted"
    )


if __name__ == "__main__":
    main()
