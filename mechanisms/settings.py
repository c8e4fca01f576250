"""What a configuration says to a mechanism about a collection."""

from dataclasses import dataclass

from ldpstream.mechanisms.blocks import Blocks
from ldpstream.mechanisms.checks import describe, read_epsilon
from ldpstream.mechanisms.domain_base import Domain
from ldpstream.mechanisms.errors import SpecError, ValueOutsideDomainError


@dataclass(frozen=True)
class Settings:
    """The keys of a collection that a mechanism may read; it refuses those it does not know.

    `path` is the collection's key path. `epsilon` and `sensitive` are raw, None where absent.
    """

    path: str
    domain: Domain
    blocks: Blocks | None
    epsilon: object
    sensitive: object

    def read_epsilon(self) -> float:
        """Return the one finite budget.

        Raises:
            SpecError: where it is anything else.
        """
        return read_epsilon(self.epsilon, f"{self.path}.epsilon")

    def read_sensitive(self) -> frozenset[int]:
        """Return the indices of the sensitive values.

        Raises:
            SpecError: where there is none, one is listed twice, or one is outside the domain.
        """
        path = f"{self.path}.sensitive"
        if not isinstance(self.sensitive, list) or not self.sensitive:
            given = "nothing" if self.sensitive is None else describe(self.sensitive)
            raise SpecError(path, f"a list of at least one value to protect, got {given}")
        try:
            indices = self.domain.index(self.sensitive).tolist()
        except ValueOutsideDomainError as error:
            raise SpecError(f"{path}[{error.position}]", error.expected) from None
        if len(set(indices)) < len(indices):
            raise SpecError(path, "each value once")
        return frozenset(indices)

    def refuse_blocks(self, mechanism: str) -> None:
        """Raise `SpecError` where blocks are given to a mechanism that has none."""
        if self.blocks is not None:
            raise SpecError(f"{self.path}.domain.blocks", f"no blocks with {mechanism}")

    def refuse_sensitive(self, mechanism: str) -> None:
        """Raise `SpecError` where sensitive values are given to a mechanism that has none."""
        if self.sensitive is not None:
            raise SpecError(f"{self.path}.sensitive", f"no such key with {mechanism}")
