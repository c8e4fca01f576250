"""The request for a plan: respondents, expected shares, a workload, limits."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np

from ldpstream.agents.config import CollectionConfig
from ldpstream.estimators.planning.choices import LIMIT_SECONDS, Objective
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
from ldpstream.mechanisms.policies.policy import Policy
from ldpstream.mechanisms.wire.spec import CollectionSpec

UNIFORM: Final = "uniform"
ZIPF: Final = "zipf"


class PriorError(ValueError):
    """An invalid prior; the message names the file, the place and what was expected."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PlanRequest:
    """A collection, and all that its plan depends on, as `ldpstream.plan` describes it.

    Without an `objective` mechanisms are sorted by the published ranges and quantiles; if there are
    none, by all ranges under a metric policy, and by all values under any other. Without
    `search_seconds` the best channel is searched if that is fast, or if a `channel_file` is given.

    Raises:
        ValueError: for `respondents` or a `width` not above 0, or no time to search for a channel
            that is to be written.
    """

    collection: CollectionConfig
    respondents: int
    prior: str | Sequence[float] | None = None
    objective: Objective | None = None
    search_seconds: float | None = None
    channel_file: str | Path | None = None
    width: float | None = None
    limit_seconds: float = LIMIT_SECONDS

    def __post_init__(self) -> None:
        if self.respondents < 1:
            raise ValueError(
                f"respondents: expected a whole number above 0, got {self.respondents}"
            )
        if self.width is not None and not self.width > 0.0:
            raise ValueError(f"width: expected a number above 0, got {self.width}")
        if self.channel_file and self.search_seconds is not None and self.search_seconds <= 0.0:
            raise ValueError(
                f"search_seconds: expected a number above 0, got {self.search_seconds}"
            )

    @cached_property
    def spec(self) -> CollectionSpec:
        """The spec to plan: the collection's own, without public weights.

        These are sent in the clear, so they do not affect the plan.
        """
        spec = self.collection.spec
        if not isinstance(spec.mechanism, PublicWeights):
            return spec
        return replace(spec, domain=spec.domain.estimated, mechanism=spec.mechanism.values)

    @property
    def policy(self) -> Policy:
        """The policy that every mechanism of the plan satisfies."""
        return self.spec.prior.policy or self.spec.mechanism.policy

    @property
    def domain(self) -> Domain:
        """The domain of the estimates."""
        return self.spec.domain.estimated

    @cached_property
    def shares(self) -> tuple[Floats, str]:
        """The design shares of the estimated values, and a text that describes them."""
        known = self.spec.prior.shares or self.policy.known_shares
        if self.prior is None and known is not None:
            return np.array([float(share) for share in known]), "the collection's prior"
        return _read_prior(UNIFORM if self.prior is None else self.prior, self.domain)

    @cached_property
    def workload(self) -> PlannedWorkload:
        """The collection's own ranges, quantiles and top, with the objective.

        Predicted errors are for `population` where the estimand is `active`, with errors no
        smaller.
        """
        options = self.collection.options
        domain, estimated = self.domain, self.spec.domain.estimated_indices
        shares, _ = self.shares
        if estimated is not None:
            # What devices report in addition to a value is uniform.
            shares = (shares / np.bincount(estimated))[estimated]
        unpublished: Objective = "ranges" if isinstance(self.policy, MetricPolicy) else "values"
        # With several dimensions they are those of each coordinate, which are not planned.
        quantiles = options.quantiles if len(domain.shape) == 1 else ()
        published = options.ranges or quantiles
        return PlannedWorkload(
            shape=domain.shape,
            ordered=domain.ordered,
            shares=shares,
            ranges=tuple(query.values(domain.shape) for query in options.ranges),
            quantiles=quantiles,
            top=domain.size if options.top is None else min(options.top, domain.size),
            estimated=estimated,
            objective=self.objective or ("published" if published else unpublished),
            estimand="population" if options.estimand == "active" else options.estimand,
        )

    @property
    def workload_text(self) -> str:
        """The queries by whose error mechanisms are sorted, in words."""
        workload, queries = self.workload, self.workload.sorting_queries
        if workload.objective == "published":
            counts = (len(workload.ranges), "range"), (len(workload.quantiles), "quantile")
            texts = [f"{n} published {what}{'s' * (n > 1)}" for n, what in counts if n]
            return " and ".join(texts) or f"the {workload.top_values.size} most frequent values"
        what = "ranges" if queries is workload.boxes else "single values"
        what += " with the prior" * (workload.objective == "mmse")
        if queries.exact:
            return f"all {queries.total:,} {what}"
        return f"a fixed sample of {len(queries.sets):,} of all {queries.total:,} {what}"


def _read_prior(prior: str | Sequence[float], domain: Domain) -> tuple[Floats, str]:
    """Return expected shares, float64 `(k,)`, and a text that describes them."""
    if not isinstance(prior, str):
        numbers = numbers_of(prior)
        if numbers is None or numbers.shape != (domain.size,):
            raise PriorError(f"prior: expected {domain.size:,} counts, one for each value")
        return _counted(numbers.astype(np.float64), "prior"), "the given counts"
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
