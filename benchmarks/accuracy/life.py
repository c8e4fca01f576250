"""Do bounds hold where devices report repeatedly? `python -m benchmarks.accuracy.life`.

    python -m benchmarks.accuracy.life --repetitions 1000 --rules spread hold

Devices report over panes of an hour by the rules of their ledgers: in some windows of each period
(`spread`, fresh and rolling), in all of them from one draw per epoch (`hold`, repeated and
randomised again), or about one of three attributes. Values stay or change; newcomers from another
population arrive in the middle, or nobody does. For each setting and epsilon every estimand is
bounded as in documents: single values, a range, a mean, and for `active` the number of devices.
Each of these is a *cell*. It fails if its bounds hold the truth significantly less often than in
95% of the repetitions (Bonferroni over all cells, at 5%), and is conservative above 97%. Exit
status 1 if a cell fails.
"""

import argparse
import sys
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from tests.seeded import SeededEntropy

from benchmarks.accuracy.life_crowd import (
    ATTRIBUTE,
    HOUR_MS,
    SIZE,
    Crowd,
    Rule,
    counts,
    draw_crowd,
    fresh_statistics,
    held_statistics,
)
from benchmarks.accuracy.life_table import LEVEL, Cell, print_table
from benchmarks.accuracy.repeated import AffineSums
from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.config.privacy.over_time import SpreadConfig
from ldpstream.agents.config.query.options import EstimateOptions
from ldpstream.agents.document.build import active_devices, of_span
from ldpstream.agents.document.estimates import bound_keywords
from ldpstream.agents.state.context import WindowTotals
from ldpstream.estimators.bounds.bounded import bound
from ldpstream.estimators.bounds.options import Estimand, Options
from ldpstream.estimators.estimate import query_sums
from ldpstream.estimators.queries import indicator, prepare_queries
from ldpstream.estimators.weights import linear_queries
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.sampled.sampled import Sampled
from ldpstream.mechanisms.interface.mechanism import Mechanism

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

RULES: Final = (
    Rule("spread 4 of 24, one window", 1, first=28, spread=(4, 24)),
    Rule("spread 6 of 24, 12 windows", 12, first=6, spread=(6, 24)),
    Rule("spread 2 of 6, one period", 6, spread=(2, 6)),
    Rule("spread 2 of 6, two periods", 12, spread=(2, 6)),
    Rule("rolling 2 of 6, two periods", 12, spread=(2, 6), rolling=True),
    Rule("rolling 2 of 6, one hour of 4 periods", 24, spread=(2, 6), rolling=True, hours=1),
    Rule("every window, 4 windows", 4),
    Rule("every window, 12 windows", 12),
    Rule("every other window, 12 windows", 12, part=0.5),
    Rule("hold 12, one window", 1, hold=12),
    Rule("hold 12, 4 windows", 4, hold=12),
    Rule("hold 4, 12 windows", 12, hold=4, part=0.8),
    Rule("hold 12 at twice epsilon, 6 windows", 6, hold=12, permanent=2.0, part=0.8),
    Rule("hold 4 at twice epsilon, 12 windows", 12, hold=4, permanent=2.0),
    Rule("sampled, one window", 1, attributes=True),
    Rule("sampled, 6 windows", 6, attributes=True),
    Rule("sampled, spread 4 of 24, one window", 1, first=28, spread=(4, 24), attributes=True),
    Rule("sampled, spread 6 of 24, 12 windows", 12, first=6, spread=(6, 24), attributes=True),
)
EPSILONS: Final = {"block-hadamard": (0.5, 2.0), "randomized-response": (1.0, 5.0)}
AGAIN: Final = {
    "l1-bits": (0.5,),
    "l1-geometric": (0.5,),
    "optimal": (1.0,),
    "subset-selection": (1.0,),
}
"""Mechanisms with other kinds of chains: measured only where reports are randomised again."""
SETS: Final = {"0.4": [0], "0.2": [2], "0.05": [4], "range": [1, 2]}
WEIGHTS: Final = {name: indicator(SIZE, np.array(members)) for name, members in SETS.items()}
MEAN: Final = np.arange(SIZE) / (SIZE - 1.0)
DEVICES: Final = "devices"
BOTH: Final = (False, True)
_CHUNK: Final = 250
"""Repetitions drawn at a time."""


@dataclass(frozen=True)
class Setting:
    """A rule, a mechanism at several epsilons, and what its devices are like."""

    rule: Rule
    mechanism: str
    changing: bool
    newcomers: bool

    @property
    def estimands(self) -> tuple[Estimand, ...]:
        """The estimands that have a truth under the rule.

        Without `spread` nobody is expected to be absent, and absent devices have no locked value.
        """
        rule = self.rule
        if (rule.attributes and rule.spread is None) or (rule.hold is not None and self.changing):
            return "respondents", "population"
        return "respondents", "population", "active"

    @property
    def epsilons(self) -> tuple[float, ...]:
        """The number of values of the mechanism."""
        return (EPSILONS | AGAIN)[self.mechanism]

    @property
    def cells(self) -> int:
        """The number of cells that `run` returns."""
        queries = len(self.epsilons) * len(self.estimands) * (len(WEIGHTS) + 1)
        return queries + (self.rule.spread is not None)

    def run(self, repetitions: int, devices: int) -> Iterator[Cell]:
        """Yield the cells: the same devices at every epsilon."""
        rule, name, kind = self.rule, self.mechanism, (self.changing, self.newcomers)
        seed = zlib.crc32(f"{rule.name}/{name}/{kind}".encode())
        rng, entropy = np.random.default_rng([seed, 1]), SeededEntropy(seed)
        collections = {epsilon: rule.collection(name, epsilon) for epsilon in self.epsilons}
        drawn: dict[float, list[Drawn]] = {epsilon: [] for epsilon in collections}
        for start in range(0, repetitions, _CHUNK):
            crowd = draw_crowd(
                rule,
                changing=self.changing,
                newcomers=self.newcomers,
                repetitions=min(_CHUNK, repetitions - start),
                devices=devices,
                rng=rng,
            )
            for epsilon, collection in collections.items():
                drawn[epsilon].append(_drawn(crowd, collection, rng, entropy))
        for epsilon, collection in collections.items():
            whole = Drawn.together(drawn[epsilon])
            for estimand in self.estimands:
                inside = _covered(rule, collection, whole, estimand).sum(axis=0).tolist()
                for query, times in zip([*WEIGHTS, "mean"], inside, strict=True):
                    setting = rule.name, name, *kind, epsilon
                    yield Cell(*setting, estimand, query, times, repetitions)
        if collection.spread is not None:
            times = _numbered(collection.spread, whole, rule.panes)
            yield Cell(rule.name, name, *kind, epsilon, "active", DEVICES, times, repetitions)


def sums_of(mechanism: Mechanism) -> list[AffineSums]:
    """Return the sums of the sets, and of the mean."""
    queries = prepare_queries(mechanism)
    sets = [queries.set_query(weights) for weights in WEIGHTS.values()]
    mean = list(linear_queries(queries, [MEAN]))
    return [
        AffineSums.of(mechanism, lambda s: query_sums(queries, s, sets, indicators=True)),
        AffineSums.of(mechanism, lambda s: query_sums(queries, s, mean, indicators=False)),
    ]


@dataclass(frozen=True)
class Drawn:
    """The draws of all repetitions: how many active devices and reports have each value, `(r, k)`.

    `statistics` are those of the reports, `(r, size)`, `population` the underlying shares, `(k,)`.
    """

    active: Integers
    reported: Integers
    statistics: Integers
    population: Floats

    @classmethod
    def together(cls, parts: Sequence[Self]) -> Self:
        """Return all repetitions."""
        active, reported, statistics = (
            np.concatenate([getattr(one, name) for one in parts])
            for name in ("active", "reported", "statistics")
        )
        return cls(active, reported, statistics, parts[0].population)

    def truth(self, estimand: Estimand) -> Floats:
        """Return what bounds should hold, `(r, q)` or `(1, q)`."""
        whole = {"respondents": self.reported, "active": self.active}
        people = whole.get(estimand, self.population[None])
        shares = people / people.sum(axis=1, keepdims=True)
        return np.asarray(shares @ np.stack([*WEIGHTS.values(), MEAN]).T)


def _drawn(
    crowd: Crowd, collection: CollectionConfig, rng: np.random.Generator, entropy: SeededEntropy
) -> Drawn:
    active, reported = counts(crowd, crowd.active), counts(crowd, crowd.taken)
    mechanism, hold = collection.spec.mechanism, collection.spec.hold
    if isinstance(mechanism, Sampled):
        place = mechanism.names.index(ATTRIBUTE)
        about = rng.binomial(reported, mechanism.probabilities[place] / WORD)
        statistics = np.zeros((len(about), mechanism.statistic_size), dtype=np.int64)
        own = fresh_statistics(mechanism.parts[place], about, rng)
        statistics[:, mechanism.slices[place]] = own
    elif hold is not None:
        reported, statistics = held_statistics(hold, crowd, rng, entropy)
    else:
        statistics = fresh_statistics(mechanism, reported, rng)
    return Drawn(active, reported, statistics, crowd.population)


def _covered(
    rule: Rule, collection: CollectionConfig, drawn: Drawn, estimand: Estimand
) -> NDArray[np.bool_]:
    """Return which repetitions and queries are covered, `(r, q)`.

    The options of the bounds follow from the collection, the span and the number of reports, as in
    a document; repetitions with the same options are bounded together.
    """
    span = rule.first * HOUR_MS, (rule.first + rule.panes) * HOUR_MS
    asked = EstimateOptions(estimand=estimand, attribute=ATTRIBUTE if rule.attributes else None)
    alike: dict[tuple[int, EstimateOptions], list[int]] = {}
    statistics, part = drawn.statistics, collection.spec.mechanism
    for place, n in enumerate(drawn.reported.sum(axis=1).tolist()):
        totals = WindowTotals(*span, statistics[place], n, late=0, rejected=0)
        own, options = of_span(collection, totals, asked)
        alike.setdefault((own.n, options), []).append(place)
    if isinstance(part, Sampled):
        number = part.names.index(ATTRIBUTE)
        statistics = statistics[:, part.slices[number]]
        part = part.parts[number]
    ends = np.empty((2, len(statistics), len(WEIGHTS) + 1))
    sums = sums_of(part)
    for (n, options), places in alike.items():
        ends[:, places] = _of(sums, statistics[places], n, options)
    truth = drawn.truth(estimand)
    return np.asarray((ends[0] <= truth + 1e-9) & (truth <= ends[1] + 1e-9))


def _of(sums: list[AffineSums], statistics: Integers, n: int, options: EstimateOptions) -> Floats:
    found = [bound(part.at(statistics), n, Options(**bound_keywords(options))) for part in sums]
    ends = [[one.low for one in found], [one.high for one in found]]
    return np.stack([np.concatenate(end, axis=1) for end in ends])


def _numbered(spread: SpreadConfig, drawn: Drawn, panes: int) -> int:
    """Return how often the bounds of the number of active devices, over all panes, hold."""
    z, inside = float(ndtri((1.0 + LEVEL) / 2.0)), 0
    numbers = drawn.active.sum(axis=1).tolist(), drawn.reported.sum(axis=1).tolist()
    for truth, n in zip(*numbers, strict=True):
        found = active_devices(spread, n, panes=panes)
        inside += abs(found["count"] - truth) <= z * found["se"]
    return inside


def settings(rules: Iterable[Rule]) -> list[Setting]:
    """Return all settings; in a single window values do not change and newcomers are there."""
    return [
        Setting(rule, name, changing, newcomers)
        for rule, name, changing, newcomers in product(rules, EPSILONS | AGAIN, BOTH, BOTH)
        if (rule.panes > 1 or not changing) and (name in EPSILONS or rule.permanent is not None)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy.life", description=__doc__)
    parser.add_argument("--repetitions", type=int, default=1_000)
    parser.add_argument("--devices", type=int, default=400)
    parser.add_argument("--rules", nargs="+", default=[""], help="beginnings of names")
    given = parser.parse_args()
    of_all = sum(one.cells for one in settings(RULES))
    chosen = [rule for rule in RULES if rule.name.startswith(tuple(given.rules))]
    found: list[Cell] = []
    for one in settings(chosen):
        found += one.run(given.repetitions, given.devices)
    failed = print_table(found, of_all)
    print(f"\n{time.process_time():,.0f} s of processor time")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
