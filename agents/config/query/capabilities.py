"""Turn a query into options of a collection, and refuse what the collection does not offer."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from ldpstream.agents.config.query.options import RESOLVERS, EstimateOptions, EstimateRequest
from ldpstream.agents.config.query.queries import BoxRequest, name_block
from ldpstream.agents.config.query.settings import SETTINGS, WORDS, Projection, Setting
from ldpstream.estimators.bounds.options import ANYTIME
from ldpstream.estimators.queries import indicator
from ldpstream.mechanisms.base.errors import QueryError
from ldpstream.mechanisms.base.texts import canonical_text
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.domains.queries import Subset
from ldpstream.mechanisms.interface.mechanism import Mechanism
from ldpstream.mechanisms.wire.spec import CollectionSpec

_SINGLY: Final = {"top": 0, "quantiles": (), "areas": False, "project": "none"}
"""The options that need the share of every single value, unless they are these."""
_LISTED: Final = 10  # names in a refusal
_SHOWN: Final = 40  # characters of a text in a refusal


def read_options(
    defaults: EstimateOptions, spec: CollectionSpec, words: Mapping[str, Sequence[str]]
) -> EstimateOptions:
    """Return `defaults`, replaced where something else was asked for.

    `words` holds the texts that users write, by parameter ("range", "top"); unknown ones are
    ignored. Ranges and quantiles, if there are any, replace all those of the defaults.
    """
    texts_by_setting = [
        (WORDS[word], texts) for word, texts in words.items() if word in WORDS and texts
    ]
    return _with(
        defaults, spec, [(setting, _read(setting, texts)) for setting, texts in texts_by_setting]
    )


def request_options(
    defaults: EstimateOptions, spec: CollectionSpec, request: EstimateRequest
) -> EstimateOptions:
    """Return the same for a request; an empty list of queries asks for none."""
    values = [(setting, getattr(request, setting.name)) for setting in SETTINGS]
    return _with(
        defaults, spec, [(setting, value) for setting, value in values if value is not None]
    )


def _read(setting: Setting, texts: Sequence[str]) -> Any:
    """Return the value of one or more texts, in the form that a body has it."""
    values = []
    for text in texts:
        try:
            values.append(setting.read(text))
        except ValueError:
            got = f"{setting.expected}, got {text[:_SHOWN]}"
            raise QueryError(setting.word, got) from None
    return values if setting.repeated else values[-1]


def _with(
    defaults: EstimateOptions, spec: CollectionSpec, values: Sequence[tuple[Setting, Any]]
) -> EstimateOptions:
    about = _spec_about(spec, values)
    attribute = next((value for setting, value in values if setting.name == "attribute"), None)
    previous = defaults if attribute is None else defaults.about(attribute)
    changes = {}
    for setting, value in values:
        if setting.name == "ranges":
            value = [_find_named(text, previous.ranges, about) for text in value]
        changes[setting.name] = RESOLVERS[setting.name](value, about.domain.estimated)
    options = replace(previous, **changes)
    if options.attribute is None:
        each = tuple(
            (name, replace(attribute_options, **changes))
            for name, attribute_options in defaults.of_attributes
        )
        options = replace(options, of_attributes=each)
    check_support(options, spec)
    return options


def _spec_about(spec: CollectionSpec, values: Sequence[tuple[Setting, Any]]) -> CollectionSpec:
    """Return the spec of the attribute that is asked about, or else the collection's own."""
    by_name = {word.name: (word, value) for word, value in values}
    attributes = spec.attributes
    _, name = by_name.get("attribute", (None, None))
    if name is not None and name not in attributes:
        what = (
            f"one of {', '.join(attributes)}"
            if attributes
            else "no attribute: values are not records"
        )
        raise QueryError("attribute", f"{what}, got {str(name)[:40]!r}")
    if name is not None:
        return attributes[name]
    for word in ("ranges", "quantiles", "linear", "areas") if attributes else ():
        setting, value = by_name.get(word, (None, None))
        if setting is not None and value:
            raise QueryError(
                setting.word, f"attribute=NAME as well, one of {', '.join(attributes)}"
            )
    return spec


def default_projection(spec: CollectionSpec) -> Projection:
    """Return how a collection publishes shares if nothing is said: of a tree, in their order."""
    return "none" if _values_alone(spec).coordinates is None else "ordered"


def _is_ordered(spec: CollectionSpec) -> bool:
    """Return whether shares can be made to agree with the order of the values."""
    domain = spec.domain.estimated
    one_dimension = domain.ordered and len(domain.shape) == 1
    return one_dimension or _values_alone(spec).coordinates is not None


def check_support(options: EstimateOptions, spec: CollectionSpec) -> None:
    """Refuse areas, orders and queries that the mechanism does not support."""
    if spec.attributes:
        _check_attributes(options, spec)
        return
    if _values_alone(spec).partial:
        _check_answered(options, spec)
    if options.project == "ordered" and not _is_ordered(spec):
        raise QueryError(
            "project",
            "simplex or another, got ordered, which is for one ordered dimension, and with the "
            "mechanism tree for more",
        )
    if options.areas and _values_alone(spec).size != spec.domain.estimated.size:
        raise QueryError(
            "areas", "a mechanism with one report distribution for each value; ask for top=all"
        )


def _check_answered(options: EstimateOptions, spec: CollectionSpec) -> None:
    """Refuse queries that the rows of a strategy of low rank do not answer, each by its name."""
    mechanism, domain = _values_alone(spec), spec.domain.estimated
    singly = mechanism.unanswered(None)
    if singly is None:
        return
    sets = (indicator(domain.size, one.values(domain.shape)) for one in options.ranges)
    weights = (one.weights for one in options.linear)
    answered = [
        *((word, None, None) for word, no in _SINGLY.items() if getattr(options, word) != no),
        *(("range", one.name, own) for one, own in zip(options.ranges, sets, strict=True)),
        *(("linear", one.name, own) for one, own in zip(options.linear, weights, strict=True)),
    ]
    for word, entry, own in answered:
        pair = mechanism.unanswered(own)
        if pair is not None:
            first, second = (domain.label(value) for value in pair)
            which = "single values" if entry is None else f"{entry!r}"
            raise QueryError(
                word.removesuffix("s") if word == "quantiles" else word,
                f"queries that the strategy's rows answer; for {which} they do not separate the "
                f"shares of {first} and {second}",
                entry=entry,
            )


def _check_attributes(options: EstimateOptions, spec: CollectionSpec) -> None:
    if options.method == ANYTIME and options.estimand == "respondents":
        raise QueryError(
            "method",
            f"another method, such as padded, or estimand = population, got {options.method}: each "
            "attribute is reported by a random part of the respondents, whose number still grows",
        )
    attributes = spec.attributes
    for name in attributes if options.attribute is None else [options.attribute]:
        check_support(options.about(name), attributes[name])


def _find_named(
    query: str | BoxRequest, published: Sequence[Subset], spec: CollectionSpec
) -> str | BoxRequest | Subset:
    """Return the published range or set, or the block, if `query` is its name."""
    if not isinstance(query, str):
        return query
    query = canonical_text(query)
    same_name = next((named for named in published if named.name == query), None)
    if same_name is not None or ".." in query:
        return same_name or query
    blocks = disclosed_blocks(spec)
    block = None if blocks is None else name_block(query, blocks)
    names = [named.name for named in published]
    names += () if blocks is None or blocks.names is None else blocks.names
    if block is None and names and not spec.domain.estimated.written.ordered:
        listed = ", ".join(names[:_LISTED]) + (", ..." if len(names) > _LISTED else "")
        raise QueryError(
            "range", f"the name of a set or a block, one of {listed}, got {query[:_SHOWN]!r}"
        )
    return block or query


def disclosed_blocks(spec: CollectionSpec) -> Blocks | None:
    """Return the blocks of the estimated values that reports disclose; None without such blocks."""
    blocks = _values_alone(spec).policy.disclosed_blocks
    return None if blocks is None or blocks.size != spec.domain.estimated.size else blocks


def _values_alone(spec: CollectionSpec) -> Mechanism:
    return spec.mechanism.marginal or spec.mechanism
