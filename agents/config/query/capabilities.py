"""Turn a query into options of a collection, and refuse what the collection does not offer."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from ldpstream.agents.config.query.errors import QueryError
from ldpstream.agents.config.query.options import (
    SETTINGS,
    WORDS,
    EstimateOptions,
    EstimateRequest,
)
from ldpstream.agents.config.query.queries import BoxRequest, Subset, name_block
from ldpstream.agents.config.query.settings import Setting
from ldpstream.estimators.bounds.options import ANYTIME, FALLBACK
from ldpstream.estimators.likelihood.mechanisms import SUPPORTED, has_likelihood
from ldpstream.estimators.projection import CORRELATED
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.interface.mechanism import Mechanism
from ldpstream.mechanisms.policies.policy import BlockPolicy
from ldpstream.mechanisms.wire.spec import CollectionSpec

_SHOWN: Final = 40  # characters of a text in a refusal


def read_options(
    defaults: EstimateOptions, spec: CollectionSpec, asked: Mapping[str, Sequence[str]]
) -> EstimateOptions:
    """Return `defaults`, replaced where something else was asked for.

    `asked` holds the texts that users write, by parameter ("range", "top"); unknown ones are
    ignored. Ranges and quantiles, if there are any, replace all those of the defaults.

    Raises:
        QueryError: naming the parameter, if it is invalid or does not fit the collection.
    """
    known = [(WORDS[word], texts) for word, texts in asked.items() if word in WORDS and texts]
    return _with(defaults, spec, [(one, _read(one, texts)) for one, texts in known])


def request_options(
    defaults: EstimateOptions, spec: CollectionSpec, asked: EstimateRequest
) -> EstimateOptions:
    """Return the same for a request; an empty list of queries asks for none.

    Raises:
        QueryError: naming the parameter that does not fit the collection.
    """
    given = [(one, getattr(asked, one.name)) for one in SETTINGS]
    return _with(defaults, spec, [(one, value) for one, value in given if value is not None])


def _read(setting: Setting, texts: Sequence[str]) -> Any:
    """Return the value of one or more texts, in the form that a body has it.

    Raises:
        QueryError: for an invalid text.
    """
    values = []
    for text in texts:
        try:
            values.append(setting.read(text))
        except ValueError:
            got = f"{setting.expected}, got {text[:_SHOWN]}"
            raise QueryError(setting.word, got) from None
    return values if setting.repeated else values[-1]


def _with(
    defaults: EstimateOptions, spec: CollectionSpec, given: Sequence[tuple[Setting, Any]]
) -> EstimateOptions:
    about = _asked_about(spec, given)
    attribute = next((value for one, value in given if one.name == "attribute"), None)
    own = defaults if attribute is None else defaults.about(attribute)
    changes = {}
    for one, value in given:
        if one.name == "ranges":
            value = [_named(text, own.ranges, about) for text in value]
        changes[one.name] = one.resolve(value, about.domain.estimated)
    options = replace(own, **changes)
    if options.attribute is None:
        each = tuple((name, replace(one, **changes)) for name, one in defaults.of_attributes)
        options = replace(options, of_attributes=each)
    check_support(options, spec)
    return options


def _asked_about(spec: CollectionSpec, given: Sequence[tuple[Setting, Any]]) -> CollectionSpec:
    """Return the spec of the attribute that is asked about, or else the collection's own.

    Raises:
        QueryError: for an unknown attribute, and for queries that need one.
    """
    asked = {one.name: (one, value) for one, value in given}
    known = spec.attributes
    _, name = asked.get("attribute", (None, None))
    if name is not None and name not in known:
        what = f"one of {', '.join(known)}" if known else "no attribute: values are not records"
        raise QueryError("attribute", f"{what}, got {str(name)[:40]!r}")
    if name is not None:
        return known[name]
    for one in ("ranges", "quantiles", "linear", "areas") if known else ():
        setting, value = asked.get(one, (None, None))
        if setting is not None and value:
            raise QueryError(setting.word, f"attribute=NAME as well, one of {', '.join(known)}")
    return spec


def check_support(options: EstimateOptions, spec: CollectionSpec) -> None:
    """Refuse areas, likelihoods and power laws where the mechanism does not support them.

    Raises:
        QueryError: naming `method`, `project` or `areas`, what it is for, and what to ask for
            instead.
    """
    if spec.attributes:
        _check_attributes(options, spec)
        return
    if options.project == "power" and _values_alone(spec).id in CORRELATED:
        raise QueryError(
            "project",
            f"simplex or another, got power, which needs independent noise for each value: not for "
            f"{', '.join(CORRELATED)}",
        )
    if options.areas and _values_alone(spec).size != spec.domain.estimated.size:
        raise QueryError(
            "areas", "a mechanism with one report distribution for each value; ask for top=all"
        )
    asked = {"project": options.project == "likelihood", "method": options.method in FALLBACK}
    instead = {
        "project": "simplex",
        "method": "padded" if options.method == "profile" else "exact",
    }
    if any(asked.values()) and not supports_likelihood(spec):
        word = next(word for word, one in asked.items() if one)
        mechanism = _values_alone(spec)
        raise QueryError(
            word,
            f"{instead[word]} or another, got {getattr(options, word)}, which is for {SUPPORTED}: "
            f"this is {mechanism.id} with {mechanism.size:,} values",
        )
    if asked["project"] and options.method == "normal":
        raise QueryError(
            "method",
            "profile or another with project = likelihood, got normal, whose bounds hold only for "
            "the unbiased estimate",
        )


def _check_attributes(options: EstimateOptions, spec: CollectionSpec) -> None:
    if options.method in ANYTIME and options.estimand == "respondents":
        raise QueryError(
            "method",
            f"another method, such as padded, or estimand = population, got {options.method}: each "
            "attribute is reported by a random part of the respondents, whose number still grows",
        )
    known = spec.attributes
    for name in known if options.attribute is None else [options.attribute]:
        check_support(options.about(name), known[name])


def _named(
    asked: str | BoxRequest, published: Sequence[Subset], spec: CollectionSpec
) -> str | BoxRequest | Subset:
    """Return the published range or set, or the block, if `asked` is its name."""
    if not isinstance(asked, str):
        return asked
    known = next((one for one in published if one.name == asked), None)
    if known is not None or ".." in asked:
        return known or asked
    blocks = disclosed_blocks(spec)
    return (None if blocks is None else name_block(asked, blocks)) or asked


def disclosed_blocks(spec: CollectionSpec) -> Blocks | None:
    """Return the blocks of the estimated values that reports disclose; None without such blocks."""
    policy = _values_alone(spec).policy
    if not isinstance(policy, BlockPolicy) or policy.blocks.size != spec.domain.estimated.size:
        return None
    return policy.blocks


def supports_likelihood(spec: CollectionSpec) -> bool:
    """Return whether shares of a collection's values can be estimated by likelihood."""
    return has_likelihood(_values_alone(spec))


def _values_alone(spec: CollectionSpec) -> Mechanism:
    return spec.mechanism.marginal or spec.mechanism
