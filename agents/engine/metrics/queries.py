"""Turn the queries of an estimate document into numbers for Prometheus.

Names are `range:NAME`, `quantile:P`, `linear:NAME`, `mmse:LABEL` if priors are known, and
`top:RANK` for the list of values: the leading values change, so one series for every value that
ever led would be unbounded. If the list has exactly the labels that the configuration names, it is
`value:LABEL`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from pydantic import JsonValue

from ldpstream.agents.document.model import EstimateDocument
from ldpstream.mechanisms.base.checks import number_text
from ldpstream.mechanisms.domains.attributes import Attributes
from ldpstream.mechanisms.domains.parse import Domain, Labels


@dataclass(frozen=True)
class QueryGauge:
    """One query: its estimate and bounds, each None if undefined.

    Shares are between 0 and 1 up to noise; a quantile is in the unit of the values, a mean in that
    of its weights.
    """

    query: str
    value: float | None
    low: float | None
    high: float | None


def query_gauges(document: EstimateDocument, domain: Domain) -> Iterator[QueryGauge]:
    """Yield the queries of a document over a domain; none if it is withheld.

    For records: those of each attribute, as `ATTRIBUTE.QUERY`.
    """
    if isinstance(domain, Attributes):
        for about in document.attributes:
            own = domain.domains[domain.names.index(about.attribute or "")].estimated
            for gauge in query_gauges(about, own):
                yield replace(gauge, query=f"{about.attribute}.{gauge.query}")
        return
    named = isinstance(domain, Labels) and len(document.distribution) == domain.size
    for rank, entry in enumerate(document.distribution, start=1):
        query = f"value:{entry.value}" if named else f"top:{rank}"
        yield QueryGauge(query, entry.share, entry.low, entry.high)
    if document.mmse is not None:
        one = document.mmse
        yield QueryGauge(f"mmse:{one.value}", one.share, one.low, one.high)
    for part in document.ranges:
        yield QueryGauge(f"range:{part.name}", part.share, part.low, part.high)
    for asked in document.linear:
        yield QueryGauge(f"linear:{asked.name}", asked.mean, asked.low, asked.high)
    for quantile in document.quantiles:
        yield QueryGauge(
            f"quantile:{number_text(quantile.p)}",
            _position(quantile.value, 0.5),
            _position(quantile.low, 0.0),
            _position(quantile.high, 1.0),
        )


def _position(label: JsonValue, part: float) -> float | None:
    """Return a label as a number: for a bin `[low, high]` the point after this part of it."""
    if isinstance(label, bool):
        return None
    if isinstance(label, int | float):
        return float(label)
    if isinstance(label, list) and len(label) == 2:
        low, high = label
        if isinstance(low, int | float) and isinstance(high, int | float):
            return low + part * (high - low)
    return None
