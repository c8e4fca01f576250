"""Do bounds hold at every moment of a window? `python -m benchmarks.accuracy.anytime`.

Seeded windows are looked at from the first report to the 20,000th, ever more rarely. A window is
wrong if the truth is outside the 95% bounds at any look: the realised share so far for respondents,
the share that values were drawn from for the population. Widths are half-widths over 1.96 true
standard errors, the mean over windows, at 500 reports and at 10,000, where anytime bounds are
sharpest. Statistics that are sums have rows without widths. Exit status 1 if a row of anytime
bounds is wrong in more than 5% of the windows.
"""

import argparse
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.dirichlet import dirichlet_bounds
from benchmarks.accuracy.repeated import AffineSums, draw_of
from benchmarks.accuracy.simulate import uniform, zipf
from ldpstream.estimators.bounds.bounded import bound
from ldpstream.estimators.bounds.options import SHARPEST, Estimand, Method, Options
from ldpstream.estimators.bounds.types import Estimate, Limits, Noise, Sums
from ldpstream.estimators.estimate import query_sums
from ldpstream.estimators.queries import CountQuery, SetDecoder, indicator, prepare_queries
from ldpstream.mechanisms.base.arrays import map_arrays
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.families.binary import Binary
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from ldpstream.mechanisms.families.design.mechanism import RandomizedResponse
from ldpstream.mechanisms.families.groups.high_low import HighLow
from ldpstream.mechanisms.families.l1.bits import L1Bits
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from ldpstream.mechanisms.families.matrix.matrix import Matrix
from ldpstream.mechanisms.families.matrix.strategy import Strategy
from ldpstream.mechanisms.families.subset.selection import SubsetSelection
from ldpstream.mechanisms.interface.mechanism import Mechanism
from ldpstream.mechanisms.policies.metric import MetricPolicy
from ldpstream.mechanisms.policies.policy import BlockPolicy

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LOOKS: Final = (*range(1, 100), *range(100, 1_000, 10), *range(1_000, 20_001, 100))
"""Numbers of reports at which windows are looked at."""
FIRST: Final = 500
TARGET = 0.05
RARE = 0.002
ESTIMANDS: Final[tuple[Estimand, ...]] = ("respondents", "population")
METHODS: Final[tuple[Method, ...]] = ("normal", "bernstein", "anytime")
ANYTIME = ("anytime", "Dirichlet")
_FEW = 4  # distinct values of h: with more, the Dirichlet mixture is far too wide to compare


@dataclass(frozen=True)
class Setting:
    """A set whose share is asked at every look; `shares`, float64 `(k,)`, are the population's."""

    name: str
    mechanism: Mechanism
    shares: Floats
    members: tuple[int, ...]


@dataclass(frozen=True)
class Asked:
    """A setting's query, reduced to what it distinguishes of users and reports.

    `atoms` are the values of h, float64 `(m,)`, `group` the disclosed group of each, int64, and
    `joint` the probabilities of (in the set or not, atom), float64 `(2, m)`. `quietest` and
    `noisiest` bound each group's noise, `lightest` and `heaviest` its weights; `noise` is the mean
    noise, `share` the set's share.
    """

    setting: Setting
    query: CountQuery
    atoms: Floats
    group: Integers
    joint: Floats
    quietest: Floats
    noisiest: Floats
    lightest: Floats
    heaviest: Floats
    noise: float
    disclosed: bool

    @property
    def share(self) -> float:
        """The share of the set in the population."""
        return float(self.joint[1].sum())

    def error(self, n: int, estimand: Estimand) -> float:
        """Return the true standard error."""
        sampling = self.share * (1.0 - self.share) if estimand == "population" else 0.0
        return float(np.sqrt((self.noise + sampling) / n))


def settings() -> Iterator[Setting]:
    """Yield the settings of the table."""
    fives = BlockHadamard(1.0, Blocks(np.arange(40) // 8))
    yield Setting("block-hadamard, 5 of 8, common", fives, zipf(40), (0,))
    rare = np.concatenate([np.full(32, (1.0 - RARE) / 32), np.full(8, RARE / 8)])
    yield Setting("block-hadamard, rare block", fives, rare, (32,))
    yield Setting("high-low, rare plain value", HighLow(1.0, 33, frozenset(range(32))), rare[:33] /
                  rare[:33].sum(), (32,))  # fmt: skip
    yield Setting("l1-geometric 64, a value", L1Geometric(1.0, (64,)), uniform(64), (32,))
    line = L1Geometric(1.0, (64,))
    yield Setting("l1-geometric 64, 10..25", line, zipf(64, 1.1), tuple(range(10, 26)))
    yield Setting("l1-geometric 64, first half", line, uniform(64), tuple(range(32)))
    everybody = np.array([0.0, 1.0])
    for epsilon in (6.0, 8.0, 9.0):
        yield Setting(f"binary {epsilon:g}, all hold it", Binary(epsilon, epsilon), everybody, (1,))
    for epsilon in (0.3, 6.0):
        many = RandomizedResponse(epsilon, Blocks.one(40))
        yield Setting(f"randomized-r. {epsilon:g}, rare", many, zipf(40, 3.0), (30,))
        yield Setting(f"randomized-r. {epsilon:g}, all hold it", many, np.eye(40)[0], (0,))


def summed_settings() -> Iterator[Setting]:
    """Yield the settings whose statistics are sums."""
    part = tuple(range(4, 10))
    yield Setting("l1-bits 16, 4..9", L1Bits(0.5, (16,)), zipf(16), part)
    haar = Matrix(BlockPolicy(1.0, Blocks.one(16)), Strategy.built_in("haar", 16))
    yield Setting("matrix, haar 16, 4..9", haar, zipf(16), part)
    lines = Matrix(MetricPolicy(6.0, (16,)), Strategy.built_in("prefix", 16))
    yield Setting("matrix, prefix 16, 4..9", lines, uniform(16), part)
    blocks = Blocks(np.repeat([0, 1], [15, 1]))
    yield Setting("subset, 15 + 1, 4..9", SubsetSelection(3.0, blocks), zipf(16), part)


def ask(setting: Setting) -> Asked:
    """Prepare a setting's query."""
    queries = prepare_queries(setting.mechanism)
    members = indicator(setting.mechanism.size, np.array(setting.members))
    query = queries.set_query(members)
    if not (isinstance(queries, SetDecoder) and isinstance(query, CountQuery)):
        raise TypeError("expected a mechanism whose statistic counts symbols")
    pairs = np.stack([queries.outputs.of_place.astype(np.float64), np.round(query.h, 9)])
    (group, atoms), of_output = np.unique(pairs, axis=1, return_inverse=True)
    joint = np.zeros((2, atoms.size))
    for value, row in enumerate(setting.mechanism.channel().rows):
        for output, probability in row.items():
            place = of_output.reshape(-1)[output]
            joint[int(members[value]), place] += setting.shares[value] * float(probability)
    quietest, noisiest, lightest, heaviest = queries.groups.extremes(query.noise, query.weights)
    return Asked(
        setting=setting,
        query=query,
        atoms=atoms,
        group=group.astype(np.int64),
        joint=joint,
        quietest=quietest,
        noisiest=noisiest,
        lightest=lightest,
        heaviest=heaviest,
        noise=float(setting.shares @ query.noise),
        disclosed=queries.groups.disclosed,
    )


def windows(asked: Asked, number: int, seed: int) -> Iterator[tuple[int, Integers]]:
    """Yield each look: n, and the counts so far, int64 `(windows, 2, m)`."""
    rng = np.random.default_rng(seed)
    cells = asked.joint.reshape(-1) / asked.joint.sum()
    counts = np.zeros((number, cells.size), dtype=np.int64)
    for before, n in pairwise((0, *LOOKS)):
        counts += rng.multinomial(n - before, cells, number)
        yield n, counts.reshape(number, 2, -1)


def summed_wrong(setting: Setting, number: int, seed: int) -> dict[tuple[Estimand, str], float]:
    """Return the share of windows wrong at some look, where statistics are sums."""
    mechanism, queries = setting.mechanism, prepare_queries(setting.mechanism)
    members = indicator(mechanism.size, np.array(setting.members))
    query = [queries.set_query(members)]
    affine = AffineSums.of(mechanism, lambda s: query_sums(queries, s, query, indicators=True))
    rng, counts = np.random.default_rng(seed), np.zeros((number, mechanism.size), dtype=np.int64)
    statistics = np.zeros((number, mechanism.statistic_size), dtype=np.int64)
    wrong: dict[tuple[Estimand, str], NDArray[np.bool_]] = {}
    for before, n in pairwise((0, *LOOKS)):
        added = rng.multinomial(n - before, setting.shares, number)
        counts += added
        statistics += draw_of(mechanism, added, int(rng.integers(1 << 32)))
        sums = affine.at(statistics)
        first = partial(_first_query, sums.total.shape)
        for estimand in ESTIMANDS:
            options = Options(method="anytime", estimand=estimand)
            found = bound(map_arrays(first, sums), n, options)
            truth = counts @ members / n
            if estimand == "population":
                truth = np.full(number, setting.shares @ members)
            outside = (found.low > truth + 1e-12) | (found.high < truth - 1e-12)
            key = estimand, "anytime"
            wrong[key] = outside | wrong.get(key, np.zeros(number, dtype=np.bool_))
    return {key: float(missed.mean()) for key, missed in wrong.items()}


def _first_query(shape: tuple[int, ...], column: Floats) -> Floats:
    return np.broadcast_to(column, shape)[:, 0]


def sums_of(asked: Asked, counts: Integers) -> Sums:
    """Return the sums at one look, one entry per window, from counts as `windows` yields them.

    As `query_sums` does for one statistic.
    """
    reports = counts.sum(axis=1)
    total = reports @ asked.atoms
    query, same = asked.query, np.ones(len(counts))
    return Sums(
        total=total,
        squares=reports @ asked.atoms**2,
        offset=total,
        noise=Noise(
            floor=reports @ asked.quietest[asked.group],
            ceiling=reports @ asked.noisiest[asked.group],
            slope=same * (asked.noisiest - asked.quietest).max(),
            reports=reports.astype(np.float64) @ (asked.noisiest[asked.group] > 0.0),
            moment=reports @ (asked.noisiest[asked.group] + 1.0),
            peak=same * (asked.noisiest.max() + 1.0),
            typical=same * query.noise.mean(),
            deviation=same * query.deviation,
        ),
        limits=Limits(
            least=same * query.least,
            largest=same * query.largest,
            bottom=0.0 * same,
            top=same,
            fewest=reports @ asked.lightest[asked.group],
            most=reports @ asked.heaviest[asked.group],
        ),
        typical_sampling=same * query.weights.var(),
        disclosed=asked.disclosed,
        indicators=True,
    )


def bounds_of(asked: Asked, counts: Integers, n: int, options: Options) -> tuple[Floats, Floats]:
    """Return the bounds of all windows at one look, two of `(windows,)`."""
    estimate: Estimate = bound(sums_of(asked, counts), n, options)
    return estimate.lowest, estimate.highest


def merged(asked: Asked, reports: Integers) -> tuple[Integers, Floats]:
    """Return the counts of each distinct value of h, `(windows, distinct)`, and these values."""
    atoms, place = np.unique(asked.atoms, return_inverse=True)
    return np.stack([reports[:, place == i].sum(axis=1) for i in range(atoms.size)], axis=1), atoms


def trajectories(
    asked: Asked, number: int, seed: int, *, dirichlet: bool = False
) -> dict[tuple[Estimand, str], tuple[float, dict[int, float]]]:
    """Return, for each estimand and method, the share of windows wrong at some look, and widths.

    Widths are those that the module's docstring describes, by n.
    """
    wrong: dict[tuple[Estimand, str], NDArray[np.bool_]] = {}
    widths: dict[tuple[Estimand, str], dict[int, float]] = {}
    for n, counts in windows(asked, number, seed):
        reports = counts.sum(axis=1)
        for estimand in ESTIMANDS:
            truth = counts[:, 1].sum(axis=1) / n if estimand == "respondents" else asked.share
            found: dict[str, tuple[Floats, Floats]] = {
                method: bounds_of(asked, counts, n, Options(method=method, estimand=estimand))
                for method in METHODS
            }
            if dirichlet and estimand == "population":
                found["Dirichlet"] = dirichlet_bounds(*merged(asked, reports), TARGET)
            middle = reports @ asked.atoms / n
            for method, (low, high) in found.items():
                key = estimand, method
                outside = (low > truth + 1e-12) | (high < truth - 1e-12)
                wrong[key] = outside | wrong.get(key, np.zeros(number, dtype=np.bool_))
                if n in (FIRST, SHARPEST):
                    half = np.maximum(high - middle, middle - low).mean()
                    normal = 1.959964 * asked.error(n, estimand)
                    widths.setdefault(key, {})[n] = float(half / normal)
    return {key: (float(missed.mean()), widths[key]) for key, missed in wrong.items()}


def seed_of(setting: Setting) -> int:
    """Return the setting's seed, the same in every run."""
    return zlib.crc32(setting.name.encode())


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.accuracy.anytime", description=__doc__
    )
    parser.add_argument("--windows", type=int, default=2000)
    number = parser.parse_args().windows
    print(f"95% bounds over {number} windows, {len(LOOKS)} looks at 1 to {LOOKS[-1]:,} reports")
    print(f"{'query':31} estimand     bounds         wrong  width at {FIRST}, {SHARPEST:,}")
    met = True
    for setting in settings():
        asked = ask(setting)
        few = np.unique(asked.atoms).size <= _FEW
        found = trajectories(asked, number, seed_of(setting), dirichlet=few)
        for (estimand, method), (wrong, widths) in found.items():
            good = method not in ANYTIME or wrong <= TARGET
            met &= good
            print(
                f"{setting.name:31} {estimand:12} {method:13} {wrong:6.4f}     "
                f"{widths[FIRST]:7.2f} {widths[SHARPEST]:7.2f}{'' if good else '  MISSED'}",
                flush=True,
            )
    for setting in summed_settings():
        summed = summed_wrong(setting, number, seed_of(setting))
        for (estimand, method), wrong in summed.items():
            met &= wrong <= TARGET
            missed = "" if wrong <= TARGET else "  MISSED"
            print(f"{setting.name:31} {estimand:12} {method:13} {wrong:6.4f}{missed}", flush=True)
    print("\nall targets met" if met else "\nsome targets missed")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
