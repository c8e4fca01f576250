"""The text keys of a collection: its name, its topic, the precision of its times."""

import re
from typing import Final

from ldpstream.mechanisms.base.checks import describe
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.base.times import format_duration, parse_duration

LEGAL_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,200}")
_LONGEST_PRECISION_MS: Final = 36_500 * 86_400_000


def read_topic(given: object, path: str) -> str:
    """Return the name of a topic.

    Raises:
        SpecError: if Kafka does not accept it.
    """
    if not isinstance(given, str) or not LEGAL_NAME.fullmatch(given) or given in (".", ".."):
        raise SpecError(
            path, f"a topic of at most 200 letters, digits, '.', '_' and '-', got {describe(given)}"
        )
    return given


def read_precision(given: object, path: str) -> int:
    """Return the precision of times in milliseconds.

    Raises:
        SpecError: if it is not a duration above 0 and at most a hundred years.
    """
    if isinstance(given, str):
        try:
            precision_ms = parse_duration(given)
        except ValueError:
            precision_ms = 0
        if 0 < precision_ms <= _LONGEST_PRECISION_MS:
            return precision_ms
    longest = format_duration(_LONGEST_PRECISION_MS)
    raise SpecError(
        path, f'a duration above 0 such as "1s" or "5m", at most {longest}, got {describe(given)}'
    )
