"""Which estimates by likelihood, or by a power law, suit a mechanism; refused by name elsewhere."""

from ldpstream.agents.query.errors import QueryError
from ldpstream.agents.query.options import EstimateOptions
from ldpstream.estimators.bounds.options import OTHERWISE
from ldpstream.estimators.bounds.power import CORRELATED
from ldpstream.estimators.likelihood.offered import OFFERED, has_likelihood
from ldpstream.mechanisms.interface.mechanism import Mechanism
from ldpstream.mechanisms.wire.spec import CollectionSpec


def likelihood_offered(spec: CollectionSpec) -> bool:
    """Return whether shares of a collection's values can be estimated by likelihood."""
    return has_likelihood(_values_alone(spec))


def check_offered(options: EstimateOptions, spec: CollectionSpec) -> None:
    """Refuse estimates by likelihood where the mechanism has none, and a power law where it errs.

    Raises:
        QueryError: naming `method` or `project`, what they are for, and what to ask instead.
    """
    if options.project == "power" and _values_alone(spec).id in CORRELATED:
        raise QueryError(
            "project",
            f"simplex or another, got power, which is for values whose noise is their own: not for "
            f"{', '.join(CORRELATED)}",
        )
    asked = {"project": options.project == "likelihood", "method": options.method in OTHERWISE}
    instead = {
        "project": "simplex",
        "method": "padded" if options.method == "profile" else "exact",
    }
    if any(asked.values()) and not likelihood_offered(spec):
        word = next(word for word, one in asked.items() if one)
        mechanism = _values_alone(spec)
        raise QueryError(
            word,
            f"{instead[word]} or another, got {getattr(options, word)}, which is for {OFFERED}: "
            f"this is {mechanism.id} with {mechanism.size:,} values",
        )
    if asked["project"] and options.method == "normal":
        raise QueryError(
            "method",
            "profile or another with project = likelihood, got normal, whose bounds are of the "
            "unbiased estimate alone",
        )


def _values_alone(spec: CollectionSpec) -> Mechanism:
    alone = spec.mechanism.marginal(spec.mechanism.empty())
    return spec.mechanism if alone is None else alone[0]
