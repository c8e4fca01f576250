"""Rule 7: a partition's clock advances without reports while it is idle, and by an order to close.

Everything here is decided in memory and takes effect with the head. Of the other partitions only
their winning heads count.

A partition is idle when `UnbrokenProbes` have shown for a while that all of the source has been
read. It then follows the slowest partition that is not idle. When all are idle, time advances from
the largest watermark by the time elapsed, and never jumps to the wall clock: a pause in a replay of
data from 2010 must not close every window up to today.

An operator's order to close panes (`Control`) is a message of the control topic, JSON in UTF-8:
`{"close": {"until": RFC 3339 time, "ends": {"0": offset, ...}}}`.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import nsmallest
from typing import Any, Final

from ldpstream.agents.state.records import Head
from ldpstream.agents.state.replica import Replica
from ldpstream.agents.state.windows import NEVER, WindowSpec
from ldpstream.mechanisms.base.times import format_time, parse_time

MOST_ORDERS: Final = 64
"""At most this many orders are kept for when the source has been read up to where they apply."""
MOST_ORDER_BYTES: Final = 1 << 20
"""The longest message that is read: an order names each partition in fewer than 30 bytes."""
_MOST_PARTITIONS: Final = 1 << 15
_MOST_OPENED: Final = 16
"""How many objects and arrays an order may contain; it needs three. This also bounds nesting."""
_MOST_OFFSET: Final = (1 << 63) - 1
_STRING: Final = re.compile(r'"(?:[^"\\]+|\\.)*+(?:"|\\?\Z)', re.DOTALL)
"""A string, or an unterminated one: matches in linear time."""
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


@dataclass(frozen=True)
class SeenHeads:
    """The heads of all partitions at one moment, reduced to what idle clocks need.

    Made once for all partitions that a worker owns, since each of them needs all the others.
    """

    heads: tuple[Head, ...]
    slowest: tuple[tuple[int, int], ...]
    """Clock and partition of the two slowest that are not idle, or fewer if there are fewer."""
    largest: int

    @classmethod
    def of(cls, replicas: Iterable[Replica]) -> "SeenHeads":
        """Summarise the heads of all partitions; a replica not read to its end yet has none."""
        heads = tuple(replica.head for replica in replicas if replica.head is not None)
        busy = ((head.clock, p) for p, head in enumerate(heads) if not head.idle)
        largest = max((head.clock for head in heads), default=NEVER)
        return cls(heads, tuple(nsmallest(2, busy)), largest)

    def slowest_but(self, partition: int) -> int | None:
        """Return the smallest clock of the others that are not idle; None if all are idle."""
        return next((clock for clock, p in self.slowest if p != partition), None)


class UnbrokenProbes:
    """The end-of-log probes since a partition was loaded; times are ms of one monotonic clock.

    A probe is the answer to a fetch sent at a known time or later that left nothing of the source
    unread. A single one proves little: a lagging new leader may report too low an end, and the
    answer is outdated once it arrives. So a partition is idle only after a series of probes in
    which each was sent at most `gap_ms` after the one before, the first at least an idle time ago,
    and the last at most `gap_ms` ago.

    Anything else breaks the series: a report of this state, a fetch that leaves something unread,
    another read session, or an error (which leaves a gap). Deliveries of known messages, ends seen
    earlier, and silence prove nothing.
    """

    def __init__(self, gap_ms: int) -> None:
        self._gap_ms = gap_ms
        self._series: tuple[int, int] | None = None
        # Whether a report came since the last fetch, and when the fetch that brought one was sent.
        self._came = False
        self._came_ms: int | None = None

    def came(self) -> None:
        """Restart the series: a report of this state came with the fetch that `asked` notes."""
        self._came = True
        self.broken()

    def asked(self, asked_ms: int | None, *, at_end: bool) -> None:
        """Note a fetch with the time it was sent, if known, and whether it left nothing unread."""
        if self._came:
            self._came, self._came_ms = False, asked_ms
        if not at_end or asked_ms is None:
            self.broken()
        elif self._came_ms is None or asked_ms > self._came_ms:
            self.probed(asked_ms)

    def broken(self) -> None:
        """Restart the series: something arrived, or may have arrived unseen."""
        self._series = None

    def probed(self, asked_ms: int) -> None:
        """Add a probe; `asked_ms` is no later than the time at which its fetch was sent."""
        first, last = self._series or (asked_ms, asked_ms)
        unbroken = asked_ms - last <= self._gap_ms
        self._series = (first if unbroken else asked_ms), max(last, asked_ms)

    def last_for(self, idle_ms: int, *, now_ms: int) -> bool:
        """Return whether the series is at least `idle_ms` long and still current."""
        if self._series is None:
            return False
        first, last = self._series
        return now_ms - first >= idle_ms and now_ms - last <= self._gap_ms


class IdleClock:
    """Advances the clock of a partition, idle or not."""

    def __init__(self, window: WindowSpec, partition: int) -> None:
        self._window = window
        self._partition = partition
        self._follow: tuple[int, int] | None = None
        self._closed_at_ms: int | None = None

    def advance(
        self,
        work: Head,
        seen: SeenHeads,
        controls: Iterable[Control],
        *,
        idle: bool,
        now_ms: int,
    ) -> Head:
        """Return the next head with its clock advanced; the same head if nothing changed.

        Call it at every step: elapsed time counts from the moment when all partitions were first
        seen idle.
        """
        window, p = self._window, self._partition
        orders = [c.until_ms + window.grace_ms for c in controls if work.next >= c.ends.get(p, 0)]
        clock = max([work.clock, *orders])
        if idle:
            clock = self._follow_others(clock, seen, now_ms)
        else:
            self._follow = None
        closed = work.closed
        if clock != self._closed_at_ms:
            self._closed_at_ms, closed = clock, max(closed, window.closed(clock))
        if (idle, clock, closed) == (work.idle, work.clock, work.closed):
            return work
        return replace(work, idle=idle, clock=clock, closed=closed)

    def _follow_others(self, own: int, seen: SeenHeads, now_ms: int) -> int:
        """Return the clock of an idle partition: its `own`, or what it derives from all heads."""
        slowest = seen.slowest_but(self._partition)
        if slowest is not None:
            self._follow = None
            return max(own, slowest)
        largest = max(own, seen.largest)
        start, since_ms = self._follow or (NEVER, now_ms)
        if start == NEVER or largest > start + now_ms - since_ms:
            # From now on, follow the larger watermark. Before the first watermark, time stands
            # still.
            start, since_ms = self._follow = largest, now_ms
        return NEVER if start == NEVER else start + now_ms - since_ms


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
    found = list(controls)
    while len(found) > MOST_ORDERS:
        first, second, *others = found
        ends = {
            partition: max(first.ends.get(partition, 0), second.ends.get(partition, 0))
            for partition in first.ends.keys() | second.ends.keys()
        }
        found = [Control(max(first.until_ms, second.until_ms), ends), *others]
    return found


class ControlError(ValueError):
    """A message of the control topic that is no valid order; the text says what was expected."""


def encode_control(control: Control) -> bytes:
    """Return the message that carries an order."""
    ends = {str(partition): end for partition, end in sorted(control.ends.items())}
    order = {"until": format_time(control.until_ms), "ends": ends}
    return json.dumps({"close": order}, separators=(",", ":")).encode()


def decode_control(message: bytes) -> Control:
    """Return the order that a message carries.

    Time and memory are bounded by the message's length, which is limited to MOST_ORDER_BYTES.

    Raises:
        ControlError: for anything else, whatever the bytes.
    """
    if len(message) > MOST_ORDER_BYTES:
        raise ControlError(f"expected at most {MOST_ORDER_BYTES} bytes, got {len(message)}")
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
    if not isinstance(given, dict) or len(given) > _MOST_PARTITIONS:
        raise ControlError(f"expected `ends` of at most {_MOST_PARTITIONS} partitions")
    return {_partition(partition): _offset(end) for partition, end in given.items()}


def _partition(given: str) -> int:
    if _PARTITION.fullmatch(given) is None:
        raise ControlError("expected partition numbers as keys of `ends`")
    return int(given)


def _offset(given: Any) -> int:
    if not isinstance(given, int) or isinstance(given, bool) or not 0 <= given <= _MOST_OFFSET:
        raise ControlError("expected an offset of at least 0, and below 2^63")
    return given
