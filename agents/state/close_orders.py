"""An operator's orders to close panes, and which of them are still to be followed.

An order (`Control`) is a message of the control topic, JSON in UTF-8:
`{"close": {"until": RFC 3339 time, "ends": {"0": offset, ...}}}`.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ldpstream.agents.state.records import Head
from ldpstream.agents.state.windows import WindowSpec
from ldpstream.mechanisms.base.times import format_time, parse_time

MOST_ORDERS: Final = 64
"""At most this many orders are kept for when the source has been read up to where they apply."""
MOST_ORDER_BYTES: Final = 1 << 20
"""The longest message that is read: an order names each partition in fewer than 30 bytes."""
_MOST_PARTITIONS: Final = 1 << 15
_MOST_OFFSET: Final = (1 << 63) - 1
_NO_ORDER = (LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)
_PARTITION: Final = re.compile(r"0|[1-9][0-9]{0,9}")
_EXPECTED: Final = 'expected {"close": {"until": TIME, "ends": {"PARTITION": OFFSET, ...}}}'


@dataclass(frozen=True)
class Control:
    """An operator's order to close all panes up to `until_ms`, epoch ms in the years 1 to 9999.

    It applies to a partition once the source has been read up to the end offset that it had when
    the order was given (`ends`), and at once to a partition added later.
    """

    until_ms: int
    ends: Mapping[int, int]


def outstanding(
    window: WindowSpec, controls: Iterable[Control], heads: Sequence[Head | None]
) -> list[Control]:
    """Return the orders that not all partitions' winning heads include, in order.

    All other orders have no effect any more, whoever loads a partition. A head is None if its log
    has not been read to its end.
    """

    def included(control: Control, partition: int, head: Head | None) -> bool:
        if head is None or head.next < control.ends.get(partition, 0):
            return False
        return head.clock >= control.until_ms + window.grace_ms

    return [
        control
        for control in controls
        if not all(included(control, partition, head) for partition, head in enumerate(heads))
    ]


def merge_oldest(controls: Sequence[Control]) -> list[Control]:
    """Return the orders, oldest first, merging the oldest if there are more than MOST_ORDERS.

    Two merged orders close, once both apply, exactly what they closed separately, only later. So
    orders that never apply, however many, neither fill the memory nor displace newer ones.
    """
    merged = list(controls)
    while len(merged) > MOST_ORDERS:
        first, second, *rest = merged
        ends = {
            partition: max(first.ends.get(partition, 0), second.ends.get(partition, 0))
            for partition in first.ends.keys() | second.ends.keys()
        }
        merged = [Control(max(first.until_ms, second.until_ms), ends), *rest]
    return merged


class ControlError(ValueError):
    """A message of the control topic that is no valid order; the text says what was expected."""


def encode_control(control: Control) -> bytes:
    """Return the message that carries an order."""
    ends = {str(partition): end for partition, end in sorted(control.ends.items())}
    table = {"until": format_time(control.until_ms), "ends": ends}
    return json.dumps({"close": table}, separators=(",", ":")).encode()


def decode_control(message: bytes) -> Control:
    """Return the order that a message carries.

    Time and memory are bounded by the message's length, which is limited to MOST_ORDER_BYTES.
    """
    if len(message) > MOST_ORDER_BYTES:
        raise ControlError(f"expected at most {MOST_ORDER_BYTES} bytes, got {len(message)}")
    try:
        table = json.loads(message.decode())["close"]
        until_ms, ends = parse_time(table["until"]), _ends(table["ends"])
    except ControlError:
        raise
    except _NO_ORDER as error:
        raise ControlError(_EXPECTED) from error
    return Control(until_ms=until_ms, ends=ends)


def _ends(table: Any) -> dict[int, int]:
    if not isinstance(table, dict) or len(table) > _MOST_PARTITIONS:
        raise ControlError(f"expected `ends` of at most {_MOST_PARTITIONS} partitions")
    return {_partition(partition): _offset(end) for partition, end in table.items()}


def _partition(text: str) -> int:
    if _PARTITION.fullmatch(text) is None:
        raise ControlError("expected partition numbers as keys of `ends`")
    return int(text)


def _offset(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MOST_OFFSET:
        raise ControlError("expected an offset of at least 0, and below 2^63")
    return value
