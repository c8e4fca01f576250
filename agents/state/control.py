"""Messages of the control topic: an operator's order to close panes.

JSON in UTF-8: `{"close": {"until": RFC 3339 time, "ends": {"0": offset, ...}}}`, `ends` being the
source's end offsets, by partition, when the order was given.
"""

import json
from typing import Any

from ldpstream.agents.state.clock import Control
from ldpstream.mechanisms.times import format_time, parse_time


class ControlError(ValueError):
    """A message of the control topic that is no order; the text says what was expected."""


def encode_control(control: Control) -> bytes:
    """Return the message that carries an order."""
    ends = {str(partition): end for partition, end in sorted(control.ends.items())}
    order = {"until": format_time(control.until_ms), "ends": ends}
    return json.dumps({"close": order}, separators=(",", ":")).encode()


def decode_control(message: bytes) -> Control:
    """Return the order that a message carries.

    Raises:
        ControlError: where it carries none.
    """
    try:
        order = json.loads(message)["close"]
        until_ms = parse_time(order["until"])
        ends = {int(partition): _offset(end) for partition, end in order["ends"].items()}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ControlError('expected {"close": {"until": TIME, "ends": {...}}}') from error
    return Control(until_ms=until_ms, ends=ends)


def _offset(given: Any) -> int:
    if not isinstance(given, int) or isinstance(given, bool) or given < 0:
        raise ControlError("expected an offset of at least 0")
    return given
