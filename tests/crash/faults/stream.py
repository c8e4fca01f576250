"""What devices send in a run with faults: messages that follow from a seed and their number alone.

A device that is killed and started again makes the same messages once more, byte for byte. Most
event times rise with the number; some messages come out of order, twice or with a delay, and known
shares are late, malformed, of another specification, from the future or off the precision. What has
to be counted is read off the topic afterwards (`tests.crash.faults.recount`).
"""

import re
from dataclasses import dataclass

import numpy as np

from ldpstream.agents.config import CollectionConfig
from ldpstream.mechanisms.wire.frame import encode_frame
from ldpstream.mechanisms.wire.spec import CollectionSpec
from tests.lab import START_MS

_REPLAYED = re.compile(r'grace = "\w+", idle = "off", future = "\w+"')
SHUFFLED = 8
"""Messages within blocks of this many come in any order."""
DELAYED = 40
YEAR_MS = 365 * 86_400_000
SKEW_MS = 8_000
"""The clocks of the live collection's devices are wrong by up to this much."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How one collection is configured and sent; `share` is of all reports.

    Event time is that of a replay of `windows` times 10 s (fewer where so few messages are sent
    that those out of order would be late), or wall time where partitions fall idle.
    Partitions in `silent` never receive anything. `transaction` messages are sent in one, where the
    broker has transactions.
    """

    table: str
    share: float
    frame: tuple[int, int]
    singles: float = 0.0
    windows: int = 100
    transaction: int = 0
    idempotent: bool = True
    silent: tuple[int, ...] = ()

    @property
    def reports_a_message(self) -> float:
        """The mean number of reports of a message."""
        return self.singles + (1 - self.singles) * sum(self.frame) / 2


def _table(
    mechanism: str,
    domain: str,
    window: str,
    *,
    epsilon: float,
    precision: str,
    partitions: int,
    more: str = "",
) -> str:
    """Return a collection's table without its topic."""
    return f"""mechanism = "{mechanism}"
epsilon = {epsilon}
domain = {{ {domain} }}
precision = "{precision}"
{more}window = {{ {window} }}
partitions = {partitions}
minimum = 1
publish = {{ every = "2s", top = 12 }}
"""


IDLE = 'grace = "300s", idle = "3s", future = "60s"'
"""How windows close where event time is wall time."""
PLANS = {
    "trips": Plan(
        table=_table(
            "block-hadamard",
            "size = 12, blocks = 4",
            'size = "10s", grace = "5s", idle = "off", future = "5s"',
            epsilon=1.0,
            precision="50ms",
            partitions=4,
        ),
        share=0.6,
        frame=(200, 1000),
        windows=200,
    ),
    "places": Plan(
        table=_table(
            "randomized-response",
            "size = 300, blocks = 50",
            'size = "20s", hop = "5s", grace = "10s", idle = "off", future = "10s"',
            epsilon=2.0,
            precision="1s",
            partitions=3,
        ),
        share=0.2,
        frame=(2, 40),
        singles=0.85,
        idempotent=False,
    ),
    "orders": Plan(
        table=_table(
            "high-low",
            "size = 40",
            'size = "10s", grace = "2s", idle = "off", future = "2s"',
            epsilon=1.0,
            precision="100ms",
            partitions=2,
            more='sensitive = [3, 4, 5, 6]\nrejected = "count"\n',
        ),
        share=0.08,
        frame=(10, 90),
        transaction=8,
    ),
    "singles": Plan(
        table=_table(
            "subset-selection",
            "size = 20, blocks = 5",
            'size = "10s", grace = "5s", idle = "off", future = "5s"',
            epsilon=2.0,
            precision="1s",
            partitions=3,
        ),
        share=0.08,
        frame=(2, 20),
        singles=0.9,
        transaction=40,
    ),
    "live": Plan(
        table=_table(
            "l1-geometric",
            "sizes = [32]",
            f'size = "10s", {IDLE}',
            epsilon=0.5,
            precision="1s",
            partitions=4,
        ),
        share=0.04,
        frame=(1, 60),
        silent=(2,),
    ),
}
"""The collections of a run."""


def tables(*, idle: bool) -> dict[str, str]:
    """Return the collections' tables; with `idle`, partitions of all of them fall idle."""
    found = {name: plan.table for name, plan in PLANS.items()}
    if not idle:
        return found
    return {name: _REPLAYED.sub(IDLE, table) for name, table in found.items()}


def how_many(plan: Plan, reports: int) -> int:
    """Return the number of messages of a collection in a run of this many reports."""
    return round(reports * plan.share / plan.reports_a_message)


@dataclass(frozen=True)
class Message:
    """One message; `value` None is a tombstone, which no device should send."""

    partition: int
    value: bytes | None


@dataclass(frozen=True)
class Pace:
    """When messages are due: from number `first` on, `rate` a second, beginning at `begun_ms`."""

    first: int
    begun_ms: int
    rate: float

    def due_ms(self, number: int) -> int:
        """Return when a message is due, epoch ms."""
        return self.begun_ms + round((number - self.first) / self.rate * 1000)


@dataclass(frozen=True, eq=False)
class Maker:
    """Makes the messages of one collection."""

    plan: Plan
    live: bool
    spec: CollectionSpec
    partitions: int
    messages: int
    seed: int
    pace: Pace

    @classmethod
    def of(cls, collection: CollectionConfig, reports: int, seed: int, pace: Pace) -> "Maker":
        """Return the maker of a collection's share of `reports`."""
        plan = PLANS[collection.name]
        messages = how_many(plan, reports)
        live = collection.window.idle_ms is not None
        return cls(plan, live, collection.spec, collection.partitions, messages, seed, pace)

    def message(self, number: int) -> Message:
        """Return the message that is sent as number `number`."""
        block = number // SHUFFLED
        order = np.random.default_rng([self.seed, 1, block]).permutation(SHUFFLED)
        content = block * SHUFFLED + int(order[number % SHUFFLED])
        rng = np.random.default_rng([self.seed, 2, content])
        if rng.random() < 0.02 and content >= DELAYED:
            # The very same message once more, a while later.
            content -= DELAYED
            rng = np.random.default_rng([self.seed, 2, content])
            rng.random()
        receiving = [p for p in range(self.partitions) if p not in self.plan.silent]
        partition = receiving[content % len(receiving)]
        return Message(partition, self._value(content, rng))

    def _value(self, content: int, rng: np.random.Generator) -> bytes | None:
        n = 1 if rng.random() < self.plan.singles else int(rng.integers(*self.plan.frame))
        outcome, possible = rng.random(), self.spec.mechanism.possible_reports()
        reports = possible[rng.integers(0, len(possible), n)]
        times_ms = self._times(content, n, rng)
        precision_ms = self.spec.precision_ms
        if content < DELAYED or outcome > 0.05:
            return self.spec.frame_reports(reports, times_ms=times_ms)
        cut_ms = times_ms - times_ms % precision_ms
        payload = self.spec.mechanism.encode(reports)
        if outcome < 0.02:
            cut_ms = cut_ms - (3_600_000 if self.live else 60_000)
        elif outcome < 0.025:
            cut_ms = cut_ms + 30 * YEAR_MS
        elif outcome < 0.03 and precision_ms > 1:
            cut_ms = cut_ms + 1
        elif outcome < 0.035:
            # No value produces the first half of the reports; the other half counts.
            payload = payload.copy()
            payload[: (n + 1) // 2] = 255
        elif outcome < 0.04:
            return encode_frame(b"stranger", cut_ms, payload)
        elif outcome < 0.045:
            return b"no frame at all" if content % 4 else None
        elif content % 2:
            # Some reports of a frame are late, and its other ones are not.
            cut_ms[: n // 2] -= 60_000 if not self.live else 3_600_000
        return encode_frame(self.spec.fingerprint, cut_ms, payload)

    def _times(self, content: int, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return event times spread over 3 s around that of the content's number."""
        if self.live:
            skew_ms = int(rng.integers(-SKEW_MS, SKEW_MS))
            at_ms = self.pace.due_ms(content) + skew_ms - 3_000
        else:
            delay = DELAYED if content >= DELAYED and rng.random() < 0.01 else 0
            span_ms = min(self.plan.windows, max(5, self.messages // (4 * SHUFFLED))) * 10_000
            at_ms = START_MS + (content - delay) * span_ms // self.messages
        return np.sort(rng.integers(at_ms, at_ms + 3_000, n))
