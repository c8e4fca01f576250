"""Read what a request for an estimate asks, in its URL or a JSON body, and apply the limits."""

from multidict import MultiMapping
from pydantic import ValidationError

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.http.limits import check_number, check_size, check_work
from ldpstream.agents.http.parameters import AnswerError
from ldpstream.agents.query.errors import QueryError
from ldpstream.agents.query.offered import read_options, request_options
from ldpstream.agents.query.options import WORDS, EstimateOptions, EstimateRequest


def address_options(query: MultiMapping[str], config: CollectionConfig) -> EstimateOptions:
    """Return the collection's options, replaced where the URL asks for something else.

    Raises:
        AnswerError: 400, naming the parameter and what was expected.
    """
    asked = {word: query.getall(word) for word in query}
    try:
        check_number(asked)
        options = read_options(config.options, config.spec, asked)
        about = config.attributes.get(options.attribute or "", config)
        check_size(options, about.options, about.spec.domain.estimated)
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
        check_work(len(asked.ranges or ()), len(asked.linear or ()), about.options, domain)
        options = request_options(config.options, config.spec, asked)
        check_size(options, about.options, domain)
    except QueryError as error:
        raise AnswerError(400, f"{WORDS[error.name].name}: expected {error.expected}") from error
    return options


def _plain(message: str) -> str:
    return message[:1].lower() + message[1:200]
