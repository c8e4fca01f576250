"""The spec of a round: a collection of unknown words, and what it asks about in one window.

docs/wire.md has the document. What a device has fixed beforehand is the collection's spec, and so
epsilon and the number of rounds: a round of any other is refused, whoever serves it.
"""

from dataclasses import replace
from typing import Any

from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.checks import check_keys, describe, is_whole
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.domains.words import Round, Words
from ldpstream.mechanisms.wire.spec import CollectionSpec

_KEYS = ("fingerprint", "round", "start_ms", "end_ms", "prefixes")


def words_of(spec: CollectionSpec) -> Words:
    """Return the words of a collection.

    Raises:
        SpecError: where its values are others.
    """
    if not isinstance(spec.domain, Words):
        raise SpecError(f"collection.{spec.name}.domain", "words, of which rounds can be had")
    return spec.domain


def round_number(words: Words, start_ms: int, window_ms: int) -> int:
    """Return which round a window is: runs begin at multiples of their length since the epoch."""
    return start_ms // window_ms % words.rounds


def round_document(spec: CollectionSpec, asked: Round) -> dict[str, Json]:
    """Return a round as devices read it."""
    prefixes: list[Json] = list(asked.prefixes)
    return {
        "fingerprint": spec.fingerprint.hex(),
        "round": asked.number,
        "start_ms": asked.start_ms,
        "end_ms": asked.end_ms,
        "prefixes": prefixes,
    }


def in_round(spec: CollectionSpec, document: object) -> CollectionSpec:
    """Return the spec that a device reports under in the round of a document.

    It has the fingerprint, the mechanism and the epsilon of the spec that the device has fixed.

    Raises:
        SpecError: for a round of another spec, beyond the number of rounds, in a window that is not
            its own, or about prefixes that it cannot have.
    """
    words = words_of(spec)
    try:
        asked = _read(spec, document)
        found = words.in_round(asked)
    except SpecError as error:
        raise error.within(spec.name) from None
    window_ms = asked.end_ms - asked.start_ms
    own = window_ms > 0 and asked.start_ms % window_ms == 0
    if not own or round_number(words, asked.start_ms, window_ms) != asked.number:
        raise SpecError(f"{spec.name}.round", f"the window of round {asked.number}, got another")
    return replace(spec, domain=found)


def _read(spec: CollectionSpec, document: object) -> Round:
    table: dict[str, Any] = check_keys(document, frozenset(_KEYS), "round")
    own = spec.fingerprint.hex()
    if table.get("fingerprint") != own:
        got = describe(table.get("fingerprint"))
        what = f"{own}, the spec that this device has fixed, got {got}"
        raise SpecError("round.fingerprint", what)
    number, start_ms, end_ms = (table.get(key) for key in _KEYS[1:4])
    if not (is_whole(number) and is_whole(start_ms) and is_whole(end_ms)):
        raise SpecError("round", "whole numbers in round, start_ms and end_ms")
    prefixes = table.get("prefixes")
    if not isinstance(prefixes, list) or not all(isinstance(one, str) for one in prefixes):
        raise SpecError("round.prefixes", "a list of texts")
    return Round(number, start_ms, end_ms, tuple(prefixes))
