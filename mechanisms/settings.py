"""What a configuration says to a mechanism about a collection."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ldpstream.mechanisms.blocks import Blocks
from ldpstream.mechanisms.checks import describe, read_epsilon
from ldpstream.mechanisms.domain_base import Domain
from ldpstream.mechanisms.dyadic import SMALLEST_EPSILON, budget, log_bounds
from ldpstream.mechanisms.errors import SpecError, ValueOutsideDomainError
from ldpstream.mechanisms.rounded_interval import RoundedInterval

MECHANISM_KEYS: Final = (
    "epsilon",
    "sensitive",
    "policy",
    "prior",
    "strategy",
    "channel",
    "weights",
)
"""The keys of a collection that are for its mechanism alone; each mechanism reads some."""


@dataclass(frozen=True)
class Settings:
    """The keys of a collection that a mechanism may read; it refuses those it does not know.

    `path` is the collection's key path, `keys` those of `MECHANISM_KEYS` that are given, raw, and
    `base` the folder that files are relative to.
    """

    path: str
    domain: Domain
    blocks: Blocks | None
    keys: Mapping[str, object]
    base: Path

    def only(self, mechanism: str, *names: str) -> None:
        """Refuse every key but these, and blocks unless `"blocks"` is among them.

        Raises:
            SpecError: naming the first key that the mechanism does not have.
        """
        if self.blocks is not None and "blocks" not in names:
            raise SpecError(f"{self.path}.domain.blocks", f"no blocks with {mechanism}")
        for key in self.keys:
            if key not in names:
                raise SpecError(f"{self.path}.{key}", f"no such key with {mechanism}")

    def require(self, key: str) -> object:
        """Return the raw value of a key.

        Raises:
            SpecError: where it is absent.
        """
        if key not in self.keys:
            raise SpecError(f"{self.path}.{key}", "a value, got none")
        return self.keys[key]

    def read_epsilon(self) -> float:
        """Return the one finite budget.

        Raises:
            SpecError: where it is absent or anything else, or numbers are rounded at random, which
                only budgets for each step make sense of.
        """
        if isinstance(self.domain, RoundedInterval):
            raise SpecError(
                f"{self.path}.domain.rounding", "a mechanism with a budget for each step"
            )
        return read_epsilon(self.require("epsilon"), f"{self.path}.epsilon")

    def read_step_epsilon(self) -> float:
        """Return the budget of one index step of an ordered domain.

        That is `epsilon`; where numbers are rounded at random, `log(1 + epsilon)`, rounded down, so
        that numbers u and v are protected by `epsilon |u - v| / width` (docs/theory.md section 5).

        Raises:
            SpecError: where it is absent or no finite number above 0.
        """
        epsilon = read_epsilon(self.require("epsilon"), f"{self.path}.epsilon")
        if not isinstance(self.domain, RoundedInterval):
            return epsilon
        step, _ = log_bounds(1 + budget(epsilon))
        if step <= 0.0:
            raise SpecError(f"{self.path}.epsilon", f"a number of at least {SMALLEST_EPSILON}")
        return step

    def read_sensitive(self) -> frozenset[int]:
        """Return the indices of the sensitive values.

        Raises:
            SpecError: where there is none, one is listed twice, or one is outside the domain.
        """
        path = f"{self.path}.sensitive"
        sensitive = self.keys.get("sensitive")
        if not isinstance(sensitive, list) or not sensitive:
            given = "nothing" if sensitive is None else describe(sensitive)
            raise SpecError(path, f"a list of at least one value to protect, got {given}")
        try:
            indices = self.domain.index(sensitive).tolist()
        except ValueOutsideDomainError as error:
            raise SpecError(f"{path}[{error.position}]", error.expected) from None
        if len(set(indices)) < len(indices):
            raise SpecError(path, "each value once")
        return frozenset(indices)
