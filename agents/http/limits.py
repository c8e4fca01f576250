"""Limits of one request, checked before anything is computed."""

from collections.abc import Mapping, Sequence
from typing import Final

from ldpstream.agents.http.parameters import AnswerError
from ldpstream.agents.query.errors import QueryError
from ldpstream.agents.query.options import QUERIES_LIMIT, EstimateOptions
from ldpstream.estimators.bounds.options import OTHERWISE
from ldpstream.estimators.bounds.pays import MOST
from ldpstream.mechanisms.domains.parse import Domain

BODY_BYTES: Final = 4 << 20
VALUES_LIMIT: Final = 100_000
"""Values in one list."""
CELLS_LIMIT: Final = 20_000_000
"""Number of ranges and linear queries times values of the domain; one query is always allowed."""
QUANTILE_VALUES_LIMIT: Final = 10_000
"""The largest domain for quantiles, except those that are published anyway.

Each quantile's bounds weigh all prefixes against all values: the work grows with the square.
"""
LIKELIHOOD_LIMIT: Final = 35_000
"""Number of bounds by likelihood, times (100 + values of the domain).

The time of one grows like this; all together take some seconds.
"""
ANSWERS_BYTES: Final = 2 << 30
"""Memory of one answer, as predicted by `answer_bytes`."""
CHEAP_BYTES: Final = 64 << 20
"""Memory of a cheap answer, which does not wait for costly ones."""
WAITING_LIMIT: Final = 64
"""The most requests waiting in each queue, cheap and costly."""


def check_number(asked: Mapping[str, Sequence[str]]) -> None:
    """Refuse too many queries of one kind.

    Raises:
        QueryError: naming the parameter.
    """
    for word, texts in asked.items():
        if len(texts) > QUERIES_LIMIT:
            raise QueryError(word, f"at most {QUERIES_LIMIT} of them, got {len(texts)}")


def check_work(ranges: int, linear: int, published: EstimateOptions, domain: Domain) -> None:
    """Refuse more ranges and linear queries than memory allows.

    As many as are `published` are always allowed.

    Raises:
        QueryError: naming the word.
    """
    often = len(published.ranges) + len(published.linear)
    most = max(1, often, CELLS_LIMIT // domain.size)
    if ranges + linear > most:
        raise QueryError(
            "range" if ranges else "linear",
            f"at most {most} ranges and linear queries together over {domain.size} values, "
            f"got {ranges + linear}",
        )


def check_size(options: EstimateOptions, published: EstimateOptions, domain: Domain) -> None:
    """Refuse a document that would be too large, or take too much to compute.

    `published` are the options of the collection's own documents.

    Raises:
        QueryError: naming the word.
    """
    size = domain.size
    listed = size if options.top is None else min(options.top, size)
    if listed > VALUES_LIMIT:
        raise QueryError("top", f"at most {VALUES_LIMIT} of the domain's {size} values")
    if size > QUANTILE_VALUES_LIMIT and not {*options.quantiles} <= {*published.quantiles}:
        raise QueryError(
            "quantile", f"a domain of at most {QUANTILE_VALUES_LIMIT} values, got {size}"
        )
    check_work(len(options.ranges), len(options.linear), published, domain)
    if options.method not in OTHERWISE:
        return
    asked = _by_likelihood(options, size)
    most = max(LIKELIHOOD_LIMIT // (100 + size), _by_likelihood(published, size))
    if asked > most:
        raise QueryError(
            "method",
            f"padded or another, or at most {most} values, ranges and quantiles together with "
            f"{options.method} over {size} values, got {asked}",
        )


def _by_likelihood(options: EstimateOptions, size: int) -> int:
    """Return how many shares and quantiles are bounded by likelihood."""
    if options.method not in OTHERWISE:
        return 0
    listed = size if options.top is None else min(options.top, size)
    queries = len(options.ranges) + len(options.quantiles)
    return queries + (listed if size <= MOST else 0)


def check_cost(cost_bytes: int, published_bytes: int, options: EstimateOptions) -> None:
    """Refuse a document that would take too much memory, unless a published one takes as much.

    Raises:
        AnswerError: 400, naming the cost and what to ask for instead.
    """
    if cost_bytes <= max(ANSWERS_BYTES, published_bytes):
        return
    queries = [name for name in ("linear", "ranges") if getattr(options, name)]
    fewer = {"linear": "fewer linear queries", "ranges": "fewer ranges"}
    instead = [*(fewer[name] for name in queries), "a smaller top", "project=none"]
    raise AnswerError(
        400,
        f"this answer would take {cost_bytes >> 20} MiB of memory, more than "
        f"{ANSWERS_BYTES >> 20} MiB: ask for {' or '.join(instead)}",
    )
