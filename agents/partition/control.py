"""Messages of the control topic: an operator's order to close panes.

JSON in UTF-8: `{"close": {"until": RFC 3339 time, "ends": {"0": offset, ...}}}`, `ends` being the
source's end offsets, by partition, when the order was given.
"""

import json
import re
from typing import Any, Final

from ldpstream.agents.partition.clock import Control
from ldpstream.mechanisms.base.times import format_time, parse_time

MOST_BYTES: Final = 1 << 20
"""The longest message that is read: an order names each partition in fewer than 30 bytes."""
MOST_PARTITIONS: Final = 1 << 15
_MOST_OPENED: Final = 16
"""How many objects and arrays an order may contain; it needs three. This also bounds nesting."""
_MOST_OFFSET: Final = (1 << 63) - 1
_STRING: Final = re.compile(r'"(?:[^"\\]+|\\.)*+(?:"|\\?\Z)', re.DOTALL)
"""A string, or an unterminated one: matches in linear time."""
_PARTITION: Final = re.compile(r"0|[1-9][0-9]{0,9}")
_EXPECTED: Final = 'expected {"close": {"until": TIME, "ends": {"PARTITION": OFFSET, ...}}}'


class ControlError(ValueError):
    """A message of the control topic that is not a valid order; the text says what was expected."""


def encode_control(control: Control) -> bytes:
    """Return the message that carries an order."""
    ends = {str(partition): end for partition, end in sorted(control.ends.items())}
    order = {"until": format_time(control.until_ms), "ends": ends}
    return json.dumps({"close": order}, separators=(",", ":")).encode()


def decode_control(message: bytes) -> Control:
    """Return the order that a message carries.

    Time and memory are bounded by the message's length, which is limited to MOST_BYTES.

    Raises:
        ControlError: for anything else, whatever the bytes.
    """
    if len(message) > MOST_BYTES:
        raise ControlError(f"expected at most {MOST_BYTES} bytes, got {len(message)}")
    try:
        order = _read_json(message)["close"]
        until_ms, ends = parse_time(order["until"]), _ends(order["ends"])
    except ControlError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise ControlError(_EXPECTED) from error
    return Control(until_ms=until_ms, ends=ends)


def _read_json(message: bytes) -> Any:
    text = message.decode()
    bare = _STRING.sub("", text)
    if bare.count("{") + bare.count("[") > _MOST_OPENED:
        raise ControlError(_EXPECTED)
    return json.loads(text)


def _ends(given: Any) -> dict[int, int]:
    if not isinstance(given, dict) or len(given) > MOST_PARTITIONS:
        raise ControlError(f"expected `ends` of at most {MOST_PARTITIONS} partitions")
    return {_partition(partition): _offset(end) for partition, end in given.items()}


def _partition(given: str) -> int:
    if _PARTITION.fullmatch(given) is None:
        raise ControlError("expected partition numbers as keys of `ends`")
    return int(given)


def _offset(given: Any) -> int:
    if not isinstance(given, int) or isinstance(given, bool) or not 0 <= given <= _MOST_OFFSET:
        raise ControlError("expected an offset of at least 0, and below 2^63")
    return given
