"""The keys of a collection that policies are made of: its sensitive values, and its epsilon."""

from ldpstream.mechanisms.base.checks import describe, read_epsilon
from ldpstream.mechanisms.base.errors import SpecError, ValueOutsideDomainError
from ldpstream.mechanisms.domains.base import Domain
from ldpstream.mechanisms.domains.rounded_interval import RoundedInterval
from ldpstream.mechanisms.exact.dyadic import SMALLEST_EPSILON, budget, log_bounds


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


def refuse_rounding(domain: Domain, path: str) -> None:
    """Refuse numbers that are rounded at random, which require a budget for each step.

    `path` is the collection's key path.

    Raises:
        SpecError: naming `domain.rounding` of the collection.
    """
    if isinstance(domain, RoundedInterval):
        raise SpecError(f"{path}.domain.rounding", "a mechanism with a budget for each step")


def read_step_epsilon(given: object, domain: Domain, path: str) -> float:
    """Return the budget of one index step of an ordered domain, added over steps and dimensions.

    This is `epsilon`; if numbers are rounded at random, it is `log(1 + epsilon)`, rounded down, so
    that numbers u and v are protected by `epsilon |u - v| / width` (docs/theory.md section 5).
    `path` is the key path of epsilon.

    Raises:
        SpecError: if epsilon is not a finite number above 0.
    """
    epsilon = read_epsilon(given, path)
    if not isinstance(domain, RoundedInterval):
        return epsilon
    step, _ = log_bounds(1 + budget(epsilon))
    if step <= 0.0:
        raise SpecError(path, f"a number of at least {SMALLEST_EPSILON}")
    return step
