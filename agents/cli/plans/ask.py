"""The request for a plan, read and checked: respondents, expected shares, a workload."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from ldpstream.agents.config import CollectionConfig
from ldpstream.estimators.bounds.options import Estimand
from ldpstream.estimators.planning.choices import Objective
from ldpstream.estimators.planning.workload import (
    ZIPF_EXPONENT,
    PlannedWorkload,
    counted_shares,
    uniform_shares,
    zipf_shares,
)
from ldpstream.mechanisms.base.arrays import Floats, numbers_of
from ldpstream.mechanisms.base.numbers import read_number
from ldpstream.mechanisms.domains.parse import Domain
from ldpstream.mechanisms.families.weights.public import PublicWeights
from ldpstream.mechanisms.policies.metric import MetricPolicy
from ldpstream.mechanisms.wire.spec import CollectionSpec

UNIFORM: Final = "uniform"
ZIPF: Final = "zipf"


class PriorError(ValueError):
    """An invalid prior; the message names the file, the place and what was expected."""


@dataclass(frozen=True, eq=False)
class PlanRequest:
    """A collection, and all that its plan depends on."""

    collection: CollectionConfig
    respondents: int
    prior: str
    workload: PlannedWorkload
    objective: Objective

    @property
    def estimand(self) -> Estimand:
        """The estimand of predicted errors: `population` for `active`, with errors no smaller."""
        chosen = self.collection.options.estimand
        return "population" if chosen == "active" else chosen

    @property
    def spec(self) -> CollectionSpec:
        """The spec to plan: the collection's own, without public weights."""
        return _of_values(self.collection.spec)

    @property
    def domain(self) -> Domain:
        """The domain of the estimates."""
        return self.spec.domain.estimated

    @property
    def workload_text(self) -> str:
        """The queries by whose error mechanisms are sorted, in words."""
        queries = self.workload.objective(self.objective)
        if self.objective == "published" and self._published:
            return self._published
        if self.objective == "published":
            return f"the {self.workload.top_values.size} most frequent values"
        what = "ranges" if queries is self.workload.boxes else "single values"
        if queries.exact:
            return f"all {queries.total:,} {what}"
        return f"a fixed sample of {len(queries.sets):,} of all {queries.total:,} {what}"

    @property
    def _published(self) -> str:
        counts = (len(self.workload.ranges), "range"), (len(self.workload.quantiles), "quantile")
        parts = [f"{n} published {what}{'s' * (n > 1)}" for n, what in counts if n]
        return " and ".join(parts)


def ask(
    collection: CollectionConfig,
    *,
    respondents: int,
    prior: str | Sequence[float] = UNIFORM,
    objective: Objective | None = None,
) -> PlanRequest:
    """Return the request for a collection, with its own ranges, quantiles and top filled in.

    The default objective is the published ranges and quantiles; if there are none, all ranges under
    a metric policy, and all values under any other.

    Raises:
        PriorError: for a file of counts that cannot be used.
    """
    spec, options = _of_values(collection.spec), collection.options
    domain, estimated = spec.domain.estimated, spec.domain.estimated_indices
    shares, text = read_prior(prior, domain)
    if estimated is not None:
        # What devices report in addition to a value is uniform.
        shares = (shares / np.bincount(estimated))[estimated]
    workload = PlannedWorkload(
        shape=domain.shape,
        ordered=domain.ordered,
        shares=shares,
        ranges=tuple(asked.values(domain.shape) for asked in options.ranges),
        quantiles=options.quantiles,
        top=domain.size if options.top is None else min(options.top, domain.size),
        estimated=estimated,
    )
    if objective is None:
        metric = isinstance(spec.mechanism.policy, MetricPolicy)
        unpublished: Objective = "ranges" if metric else "values"
        objective = "published" if options.ranges or options.quantiles else unpublished
    return PlanRequest(collection, respondents, text, workload, objective)


def _of_values(spec: CollectionSpec) -> CollectionSpec:
    """Leave public weights out: they are sent in the clear, so they do not affect the plan."""
    if not isinstance(spec.mechanism, PublicWeights):
        return spec
    return replace(spec, domain=spec.domain.estimated, mechanism=spec.mechanism.values)


def read_prior(prior: str | Sequence[float], domain: Domain) -> tuple[Floats, str]:
    """Return expected shares, float64 `(k,)`, and a text that describes them.

    `prior` is `uniform`, `zipf`, the path of a file with one count per line, or the counts, in the
    domain's order.

    Raises:
        PriorError: naming the file, the line and what was expected.
    """
    if not isinstance(prior, str):
        given = numbers_of(prior)
        if given is None or given.shape != (domain.size,):
            raise PriorError(f"prior: expected {domain.size:,} counts, one for each value")
        return _counted(given.astype(np.float64), "prior"), "the given counts"
    if prior == UNIFORM:
        return uniform_shares(domain.size), "uniform"
    if prior == ZIPF:
        each = " in each dimension" * (len(domain.shape) > 1)
        return zipf_shares(domain.shape), f"Zipf({ZIPF_EXPONENT}){each}, in the domain's order"
    try:
        text = Path(prior).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise PriorError(
            f"--prior: expected uniform, zipf or a readable file, got {prior}: {error.strerror}"
        ) from error
    except UnicodeDecodeError as error:
        raise PriorError(f"{prior}: expected UTF-8, one count per line") from error
    lines = [line for line in map(str.strip, text.splitlines()) if line]
    if len(lines) != domain.size:
        raise PriorError(
            f"{prior}: expected {domain.size:,} counts, one for each value, got {len(lines):,}"
        )
    counts = np.empty(domain.size)
    for place, line in enumerate(lines):
        try:
            counts[place] = read_number(line)
        except ValueError:
            raise PriorError(f"{prior}: count {place + 1}: expected a finite number >= 0") from None
    return _counted(counts, prior), f"the counts of {prior}"


def _counted(counts: Floats, where: str) -> Floats:
    try:
        return counted_shares(counts)
    except ValueError as error:
        raise PriorError(f"{where}: {error}") from None
