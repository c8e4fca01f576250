"""Sensitive values read from a configuration."""

from ldpstream.mechanisms.base.checks import describe
from ldpstream.mechanisms.base.errors import SpecError, ValueOutsideDomainError
from ldpstream.mechanisms.domains.base import Domain


def read_sensitive(given: object, domain: Domain, path: str) -> frozenset[int]:
    """Return the indices of the values that a list of labels names as sensitive.

    Raises:
        SpecError: if there is none, one is listed twice, or one is outside the domain.
    """
    if not isinstance(given, list) or not given:
        got = "nothing" if given is None else describe(given)
        raise SpecError(path, f"a list of at least one value to protect, got {got}")
    try:
        indices = domain.index(given).tolist()
    except ValueOutsideDomainError as error:
        raise SpecError(f"{path}[{error.position}]", error.expected) from None
    if len(set(indices)) < len(indices):
        raise SpecError(path, "each value once")
    return frozenset(indices)
