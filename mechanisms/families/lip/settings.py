"""The keys `prior` and `epsilon` of a `lip` collection."""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from ldpstream.mechanisms.base.checks import check_keys, describe, is_whole, read_epsilon
from ldpstream.mechanisms.base.errors import SpecError, within
from ldpstream.mechanisms.exact.dyadic import budget
from ldpstream.mechanisms.policies.lip import MAX_LEVELS, Level, interval_around, level_edges

MAX_CHANNELS = 1 << 13
"""Most levels of prior and epsilon together, which a device prepares in a third of a second."""


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


def read_prior(given: object, path: str) -> Prior:
    """Return the prior of a configuration: a number, or a table `{ levels = 64 }`.

    Raises:
        SpecError: naming the key and what was expected.
    """
    if isinstance(given, dict):
        levels = check_keys(given, frozenset({"levels"}), path).get("levels")
        if not is_whole(levels):
            found = "nothing" if levels is None else describe(levels)
            expected = f"a whole number in 1..{MAX_LEVELS}, got {found}"
            raise SpecError(f"{path}.levels", expected)
        value = None
    elif isinstance(given, int | float) and not isinstance(given, bool):
        value, levels = given, None
    else:
        expected = "a number above 0 and below 1, or { levels = 64 }"
        raise SpecError(path, f"{expected}, got {describe(given)}")
    with within(path.rpartition(".")[0]):
        return Prior(value, levels)


def read_epsilons(given: object, path: str) -> tuple[float, ...]:
    """Return the budgets to choose from: one number, or a list of different ones.

    Raises:
        SpecError: naming the entry.
    """
    if not isinstance(given, list):
        return (read_epsilon(given, path),)
    if not given:
        raise SpecError(path, "a number above 0, or a list of budgets to choose from, got none")
    epsilons = tuple(read_epsilon(e, f"{path}[{i}]") for i, e in enumerate(given))
    if len(set(epsilons)) < len(epsilons):
        raise SpecError(path, "each budget once")
    return epsilons
