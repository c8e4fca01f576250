"""Values together with the device's prior or its chosen budget, and the keys for these."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Indices, unmasked
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.checks import (
    check_keys,
    describe,
    is_whole,
    number_text,
    read_epsilon,
    real_number,
)
from ldpstream.mechanisms.base.errors import SpecError, ValueOutsideDomainError, within
from ldpstream.mechanisms.base.numbers import parse_real
from ldpstream.mechanisms.domains.base import Domain
from ldpstream.mechanisms.exact.dyadic import budget
from ldpstream.mechanisms.policies.lip import MAX_LEVELS, Level, interval_around, level_edges

MAX_CHANNELS = 1 << 13
"""Most levels of prior and epsilon together, which a device prepares in a third of a second."""
_PRIOR_EXPECTED = "a prior above 0 and below 1"


@dataclass(frozen=True)
class Prior:
    """One prior for all devices, or a number of levels for the priors that devices give.

    Exactly one of the two is given. `value` is P, the probability of the domain's second value.

    Raises:
        SpecError: if the prior is not above 0 and below 1, or the number of levels is invalid.
    """

    value: float | None = None
    levels: int | None = None

    def __post_init__(self) -> None:
        if (self.value is None) == (self.levels is None):
            raise SpecError("prior", "one prior, or a number of levels")
        if self.value is not None and not 0.0 < self.value < 1.0:
            raise SpecError("prior", f"a number above 0 and below 1, got {describe(self.value)}")
        if self.levels is not None and not (
            is_whole(self.levels) and 1 <= self.levels <= MAX_LEVELS
        ):
            raise SpecError(
                "prior.levels", f"a whole number in 1..{MAX_LEVELS}, got {describe(self.levels)}"
            )

    @property
    def local(self) -> bool:
        """Whether each device gives its own prior."""
        return self.levels is not None

    @cached_property
    def edges(self) -> tuple[float, ...]:
        """The edges of the levels, ascending; a single prior is listed twice."""
        if self.value is not None:
            return (self.value, self.value)
        return level_edges(self.levels or 1)

    @cached_property
    def representatives(self) -> tuple[float, ...]:
        """The prior that stands for each level in the Bayesian estimate: its middle in log-odds."""
        if self.value is not None:
            return (self.value,)
        halves = level_edges(2 * (self.levels or 1))
        return halves[1::2]

    def channels(self, epsilons: tuple[float, ...]) -> tuple[Level, ...]:
        """Return every pair of a level of priors and a budget, the budget varying fastest."""
        return tuple(
            Level(*interval_around(low, high), budget(epsilon))
            for low, high in pairwise(self.edges)
            for epsilon in epsilons
        )


@dataclass(frozen=True)
class PriorDomain(Domain):
    """Labels `[value, prior]`, `[value, epsilon]` or `[value, prior, epsilon]`.

    `values` is the collection's domain of two values. Prior and epsilon determine the level, and a
    label's index is `2 * level + value`. A prior must be above 0 and below 1, and an epsilon one of
    `epsilons`. Lines of text have the same columns.
    """

    ordered: ClassVar[bool] = False
    values: Domain
    prior: Prior
    epsilons: tuple[float, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of pairs of a level and a value, in one dimension."""
        return (self._levels * self.values.size,)

    @property
    def _levels(self) -> int:
        return (len(self.prior.edges) - 1) * len(self.epsilons)

    @cached_property
    def estimated(self) -> Domain:
        return self.values

    @cached_property
    def estimated_indices(self) -> Indices:
        return np.tile(np.arange(self.values.size), self._levels)

    @property
    def expected(self) -> str:
        columns = [_PRIOR_EXPECTED] * self.prior.local
        columns += [self._epsilon_expected] * (len(self.epsilons) > 1)
        return f"{self.values.expected}, with {' and '.join(columns)}"

    @cached_property
    def _epsilon_expected(self) -> str:
        return f"one of the epsilons {', '.join(map(number_text, self.epsilons))}"

    @property
    def _extra(self) -> int:
        """Number of entries in addition to the value."""
        return self.prior.local + (len(self.epsilons) > 1)

    @cached_property
    def _places(self) -> dict[float, int]:
        return {epsilon: place for place, epsilon in enumerate(self.epsilons)}

    def index(self, labels: Sequence[Any] | NDArray[Any]) -> Indices:
        if isinstance(labels, str):
            raise TypeError("expected a sequence of labels, got a single text")
        array = unmasked(labels)
        listed = array.tolist() if isinstance(array, np.ndarray) else array
        rows: list[Sequence[Any]] = [
            row if isinstance(row, list | tuple) and row else [None] for row in listed
        ]
        levels = self._levels_of([row[1:] for row in rows])
        return self._joined(levels, self.values.index([row[0] for row in rows[: levels.good]]))

    def parse_columns(self, rows: Sequence[Sequence[str]]) -> Indices:
        """Return the indices of rows of text: the value's columns, then the prior, then epsilon."""
        extra = self._extra
        levels = self._levels_of([[parse_real(text) for text in row[-extra:]] for row in rows])
        values = [row[:-extra] for row in rows[: levels.good]]
        return self._joined(levels, self.values.parse_columns(values))

    def _joined(self, levels: "_Levels", values: Indices) -> Indices:
        """Return the indices of labels; a bad level raises if all values before it are good."""
        if levels.expected is not None:
            raise ValueOutsideDomainError(levels.good, levels.expected)
        return self.values.size * np.array(levels.found, dtype=np.int64) + values

    def _levels_of(self, columns: Sequence[Sequence[object]]) -> "_Levels":
        """Return the level of each row up to the first bad one, and what was expected there."""
        levels: list[int] = []
        for column in columns:
            numbers = [real_number(entry) for entry in column]
            if len(numbers) != self._extra:
                return _Levels(levels, self.expected)
            level = 0
            if self.prior.local:
                if not 0.0 < numbers[0] < 1.0:
                    return _Levels(levels, f"{_PRIOR_EXPECTED} with the value")
                level = bisect_right(self.prior.edges, numbers[0]) - 1
            if len(self.epsilons) > 1:
                if numbers[-1] not in self._places:
                    return _Levels(levels, f"{self._epsilon_expected} with the value")
                level = level * len(self.epsilons) + self._places[numbers[-1]]
            levels.append(level)
        return _Levels(levels, None)

    def label(self, index: int) -> Json:
        """Return the value, `[low, high]` of its prior's level, and the epsilon, if given."""
        level, value = divmod(index, self.values.size)
        of_prior, place = divmod(level, len(self.epsilons))
        label: list[Json] = [self.values.label(value)]
        if self.prior.local:
            label.append(list(self.prior.edges[of_prior : of_prior + 2]))
        if len(self.epsilons) > 1:
            label.append(self.epsilons[place])
        return label

    def canonical(self) -> Json:
        """Return the values' domain; the mechanism's parameters hold levels and budgets."""
        return self.values.canonical()


@dataclass(frozen=True)
class _Levels:
    """The levels of the rows before the first bad one, and what was expected of that one."""

    found: list[int]
    expected: str | None

    @property
    def good(self) -> int:
        """How many rows have a level."""
        return len(self.found)


def read_prior(raw: object, path: str) -> Prior:
    """Return the prior of a configuration: a number, or a table `{ levels = 64 }`."""
    if isinstance(raw, dict):
        levels = check_keys(raw, frozenset({"levels"}), path).get("levels")
        if not is_whole(levels):
            received = "nothing" if levels is None else describe(levels)
            expected = f"a whole number in 1..{MAX_LEVELS}, got {received}"
            raise SpecError(f"{path}.levels", expected)
        value = None
    elif isinstance(raw, int | float) and not isinstance(raw, bool):
        value, levels = raw, None
    else:
        expected = "a number above 0 and below 1, or { levels = 64 }"
        raise SpecError(path, f"{expected}, got {describe(raw)}")
    with within(path.rpartition(".")[0]):
        return Prior(value, levels)


def read_epsilons(raw: object, path: str) -> tuple[float, ...]:
    """Return the budgets to choose from: one number, or a list of different ones."""
    if not isinstance(raw, list):
        return (read_epsilon(raw, path),)
    if not raw:
        raise SpecError(path, "a number above 0, or a list of budgets to choose from, got none")
    epsilons = tuple(read_epsilon(e, f"{path}[{i}]") for i, e in enumerate(raw))
    if len(set(epsilons)) < len(epsilons):
        raise SpecError(path, "each budget once")
    return epsilons
