"""Durations in the configuration, as whole milliseconds."""

from typing import Annotated, Final

from pydantic import BeforeValidator, WithJsonSchema

from ldpstream.agents.config.errors import refused
from ldpstream.mechanisms.base.times import format_duration, parse_duration

SECOND_MS: Final = 1_000
MINUTE_MS: Final = 60 * SECOND_MS
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS
_LONGEST_MS: Final = 36_500 * DAY_MS

_EXAMPLE: Final = 'a duration such as "250ms", "5m" or "7d"'


def _read(value: object) -> int:
    if not isinstance(value, str):
        raise refused(_EXAMPLE, value)
    try:
        milliseconds = parse_duration(value)
    except ValueError:
        raise refused(_EXAMPLE, value) from None
    if milliseconds > _LONGEST_MS:
        raise refused(f"at most {format_duration(_LONGEST_MS)}", value)
    return milliseconds


def _read_positive(value: object) -> int:
    milliseconds = _read(value)
    if milliseconds == 0:
        raise refused("a duration above 0", value)
    return milliseconds


def _read_or_off(value: object) -> int | None:
    if value == "off":
        return None
    if not isinstance(value, str) or not value[:1].isdigit():
        raise refused('a duration such as "30s", or "off"', value)
    return _read_positive(value)


_TEXT: Final = {"type": "string", "pattern": "^[0-9]+(ms|s|m|h|d|w)$", "title": "duration"}

Duration = Annotated[int, BeforeValidator(_read), WithJsonSchema(_TEXT)]
PositiveDuration = Annotated[int, BeforeValidator(_read_positive), WithJsonSchema(_TEXT)]
DurationOrOff = Annotated[
    int | None,
    BeforeValidator(_read_or_off),
    WithJsonSchema(
        {**_TEXT, "pattern": "^([0-9]+(ms|s|m|h|d|w)|off)$", "title": 'duration or "off"'}
    ),
]
