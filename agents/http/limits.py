"""How much one request may ask for: what is beyond is refused before anything is computed."""

from typing import Final

from ldpstream.agents.http.parameters import AnswerError
from ldpstream.agents.query.options import EstimateOptions
from ldpstream.mechanisms.domains.parse import Domain

BODY_BYTES: Final = 4 << 20
VALUES_LIMIT: Final = 100_000
"""Values in one list."""
QUERIES_LIMIT: Final = 100
"""Ranges, quantiles, and linear queries, of each."""
CELLS_LIMIT: Final = 20_000_000
"""Ranges and linear queries together, times the values of the domain; one may always be asked."""
QUANTILE_VALUES_LIMIT: Final = 10_000
"""Values of a domain of which quantiles are computed, but for those that are published anyway.

Each quantile's bounds weigh all prefixes against all values: the work grows as their square.
"""
ANSWERS_BYTES: Final = 2 << 30
"""Memory of all answers that are computed at once, as `answer_bytes` tells it beforehand."""
WAITING_LIMIT: Final = 64
"""Requests that wait for their turn to compute."""


def check_number(name: str, number: int) -> None:
    """Refuse too many queries of one kind.

    Raises:
        AnswerError: 400, naming the parameter.
    """
    if number > QUERIES_LIMIT:
        raise AnswerError(400, f"{name}: expected at most {QUERIES_LIMIT} of them, got {number}")


def check_work(ranges: int, linear: int, domain: Domain) -> None:
    """Refuse so many ranges and linear queries that they would take too much memory.

    Raises:
        AnswerError: 400, naming the parameter.
    """
    most = max(1, CELLS_LIMIT // domain.size)
    if ranges + linear > most:
        raise AnswerError(
            400,
            f"{'range' if ranges else 'linear'}: expected at most {most} ranges and linear queries "
            f"together over {domain.size} values, got {ranges + linear}",
        )


def check_size(options: EstimateOptions, published: EstimateOptions, domain: Domain) -> None:
    """Refuse a document that would be too large, or take too much to compute.

    `published` are the options of the collection's own documents.

    Raises:
        AnswerError: 400, naming the parameter.
    """
    listed = domain.size if options.top is None else min(options.top, domain.size)
    if listed > VALUES_LIMIT:
        raise AnswerError(
            400, f"top: expected at most {VALUES_LIMIT} of the domain's {domain.size} values"
        )
    if domain.size > QUANTILE_VALUES_LIMIT and not {*options.quantiles} <= {*published.quantiles}:
        raise AnswerError(
            400,
            f"quantile: expected a domain of at most {QUANTILE_VALUES_LIMIT} values, got "
            f"{domain.size}",
        )
    check_work(len(options.ranges), len(options.linear), domain)


def check_cost(cost_bytes: int, published_bytes: int, options: EstimateOptions) -> None:
    """Refuse a document that would take too much memory, unless one that is published takes it.

    Raises:
        AnswerError: 400, naming the cost and what to ask instead.
    """
    if cost_bytes <= max(ANSWERS_BYTES, published_bytes):
        return
    queries = [name for name in ("linear", "ranges") if getattr(options, name)]
    fewer = {"linear": "fewer linear queries", "ranges": "fewer ranges"}
    instead = [*(fewer[name] for name in queries), "a smaller top", "project=none"]
    raise AnswerError(
        400,
        f"this answer would take {cost_bytes >> 20} MiB of memory, and all answers have "
        f"{ANSWERS_BYTES >> 20} MiB: ask for {' or '.join(instead)}",
    )
