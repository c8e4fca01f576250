"""The spec of a round: a collection of unknown words with the prefixes of one window.

docs/wire.md specifies the document. A device fixes the collection's spec beforehand, and with it
epsilon and the number of rounds; it refuses a round of any other spec, whoever serves it.
"""

from dataclasses import replace
from typing import Any

from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.checks import check_keys, describe, is_whole
from ldpstream.mechanisms.base.errors import SpecError, within
from ldpstream.mechanisms.domains.words import Round, Words
from ldpstream.mechanisms.wire.spec import CollectionSpec

_KEYS = ("fingerprint", "round", "start_ms", "end_ms", "prefixes")


def words_of(spec: CollectionSpec) -> Words:
    """Return the words of a collection.

    Raises:
        SpecError: if its domain is not one of words.
    """
    if spec.words is None:
        raise SpecError(f"collection.{spec.name}.domain", "words, which alone have rounds")
    return spec.words


def round_document(spec: CollectionSpec, current: Round) -> dict[str, Json]:
    """Return the document of a round, as devices read it."""
    prefixes: list[Json] = list(current.prefixes)
    return {
        "fingerprint": spec.fingerprint.hex(),
        "round": current.number,
        "start_ms": current.start_ms,
        "end_ms": current.end_ms,
        "prefixes": prefixes,
    }


def in_round(spec: CollectionSpec, document: object) -> CollectionSpec:
    """Return the spec with which a device reports in the round of a document.

    Fingerprint, mechanism and epsilon stay those of the spec that the device has fixed.

    Raises:
        SpecError: if the round is one of another spec, does not exist, is not that of its window,
            or has invalid prefixes.
    """
    words = words_of(spec)
    with within(spec.name):
        round_ = _read(spec, document)
        refined = words.in_round(round_)
    window_ms = round_.end_ms - round_.start_ms
    aligned = window_ms > 0 and round_.start_ms % window_ms == 0
    # Runs begin at multiples of their length since the epoch.
    if not aligned or round_.start_ms // window_ms % words.rounds != round_.number:
        raise SpecError(f"{spec.name}.round", f"the window of round {round_.number}, got another")
    return replace(spec, domain=refined)


def _read(spec: CollectionSpec, document: object) -> Round:
    table: dict[str, Any] = check_keys(document, frozenset(_KEYS), "round")
    fingerprint = spec.fingerprint.hex()
    if table.get("fingerprint") != fingerprint:
        got = describe(table.get("fingerprint"))
        what = f"{fingerprint}, the spec that this device has fixed, got {got}"
        raise SpecError("round.fingerprint", what)
    number, start_ms, end_ms = (table.get(key) for key in _KEYS[1:4])
    if not (is_whole(number) and is_whole(start_ms) and is_whole(end_ms)):
        raise SpecError("round", "whole numbers in round, start_ms and end_ms")
    prefixes = table.get("prefixes")
    if not isinstance(prefixes, list) or not all(isinstance(prefix, str) for prefix in prefixes):
        raise SpecError("round.prefixes", "a list of texts")
    return Round(number, start_ms, end_ms, tuple(prefixes))
