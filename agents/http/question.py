"""What a request for an estimate asks, in its URL or a JSON body, and the limits of one request.

Limits are checked before anything is computed.
"""

from typing import Final

from multidict import MultiMapping
from pydantic import ValidationError

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.http.parameters import AnswerError
from ldpstream.agents.query.errors import QueryError
from ldpstream.agents.query.offered import read_options, request_options
from ldpstream.agents.query.options import QUERIES_LIMIT, WORDS, EstimateOptions, EstimateRequest
from ldpstream.estimators.bounds.options import FALLBACK
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


def address_options(query: MultiMapping[str], config: CollectionConfig) -> EstimateOptions:
    """Return the collection's options, replaced where the URL asks for something else.

    Raises:
        AnswerError: 400, naming the parameter and what was expected.
    """
    asked = {word: query.getall(word) for word in query}
    for word, texts in asked.items():
        if len(texts) > QUERIES_LIMIT:
            what = f"at most {QUERIES_LIMIT} of them, got {len(texts)}"
            raise AnswerError(400, f"{word}: expected {what}")
    try:
        options = read_options(config.options, config.spec, asked)
        about = config.attributes.get(options.attribute or "", config)
        _check_size(options, about.options, about.spec.domain.estimated)
    except QueryError as error:
        raise AnswerError(400, str(error)) from error
    return options


def read_body(raw: bytes) -> EstimateRequest:
    """Return the request in a body.

    Raises:
        AnswerError: 400, naming the first invalid key and what was expected.
    """
    try:
        return EstimateRequest.model_validate_json(raw)
    except ValidationError as error:
        detail = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in detail["loc"]) or "body"
        raise AnswerError(400, f"{where}: {_plain(detail['msg'])}") from error


def body_options(asked: EstimateRequest, config: CollectionConfig) -> EstimateOptions:
    """Return the collection's options, replaced where a body asks for something else.

    Raises:
        AnswerError: 400, naming the key and what was expected.
    """
    about = config.attributes.get(asked.attribute or "", config)
    domain = about.spec.domain.estimated
    try:
        # Weights by label expand to the whole domain: check their number before that.
        _check_work(len(asked.ranges or ()), len(asked.linear or ()), about.options, domain)
        options = request_options(config.options, config.spec, asked)
        _check_size(options, about.options, domain)
    except QueryError as error:
        raise AnswerError(400, f"{WORDS[error.name].name}: expected {error.expected}") from error
    return options


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


def _check_work(ranges: int, linear: int, published: EstimateOptions, domain: Domain) -> None:
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


def _check_size(options: EstimateOptions, published: EstimateOptions, domain: Domain) -> None:
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
    _check_work(len(options.ranges), len(options.linear), published, domain)
    if options.method not in FALLBACK:
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
    if options.method not in FALLBACK:
        return 0
    listed = size if options.top is None else min(options.top, size)
    queries = len(options.ranges) + len(options.quantiles)
    return queries + (listed if size <= MOST else 0)


def _plain(message: str) -> str:
    return message[:1].lower() + message[1:200]
