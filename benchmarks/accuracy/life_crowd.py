"""Devices over a span of panes: who is active, who takes part, what each reports, and the truth.

Subsets of windows are uniform, as a ledger draws them, epochs begin at an offset drawn for each
device, and values are drawn device by device. Fresh reports are multinomial draws from the rows of
the exact channel, given the values of those who report: the statistic depends on nothing else.
Held reports follow the ledger's rule pane by pane.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from tests.seeded import SeededEntropy

import ldpstream as ldp
from ldpstream.agents.config import CollectionConfig
from ldpstream.mechanisms.interface.mechanism import Mechanism
from ldpstream.mechanisms.wire.hold import Hold

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Values = NDArray[np.int8]
Booleans = NDArray[np.bool_]

SHARES: Final = np.array([0.4, 0.25, 0.2, 0.1, 0.05])
NEWCOMERS: Final = np.array([0.1, 0.15, 0.25, 0.2, 0.3])
"""Shares of the devices that arrive in the middle of a span; those already there have others."""
SIZE: Final = SHARES.size
CHANNEL: Final = Path(__file__).parents[2] / "tests/vectors/channels/classical.json"
"""A channel of SIZE values, with epsilon 1 for all pairs."""
HOUR_MS: Final = 3_600_000
ATTRIBUTE: Final = "mode"
_CHANGES: Final = 0.5


@dataclass(frozen=True)
class Rule:
    """How devices report in the panes `first..first + panes - 1`, an hour each.

    `keys` are those of the collection; `permanent` is the budget of a permanent draw, in epsilons.
    Without `spread` a device takes part in a pane with probability `part`; with `hours` it is
    active in the first `hours` panes of each period only.
    """

    name: str
    panes: int
    first: int = 0
    part: float = 1.0
    spread: tuple[int, int] | None = None
    rolling: bool = False
    hours: int | None = None
    hold: int | None = None
    permanent: float | None = None
    attributes: bool = False

    def collection(self, mechanism: str, epsilon: float) -> CollectionConfig:
        """Return the collection as parsed from a configuration file."""
        keys: dict[str, Any] = {"mechanism": mechanism, "epsilon": epsilon}
        keys["domain"] = {"size": SIZE}
        if mechanism == "optimal":
            keys["channel"] = str(CHANNEL)
            del keys["epsilon"]
        if self.attributes:
            others = {"age": {"size": 4}, "home": {"values": ["rented", "owned"]}}
            keys["domain"] = {"attributes": {**others, ATTRIBUTE: {"size": SIZE}}}
        if self.spread is not None:
            reports, windows = self.spread
            horizon = f"{windows}h"
            keys["spread"] = {"reports": reports, "horizon": horizon, "rolling": self.rolling}
        if self.hold is not None:
            keys["hold"] = self.hold
            if self.permanent is not None:
                keys["hold"] = {"windows": self.hold, "epsilon": self.permanent * epsilon}
        return ldp.define_collection("life", window={"size": "1h"}, **keys)


@dataclass(frozen=True)
class Crowd:
    """Devices of many repetitions: `values`, `active` and `taken` are `(panes, r, devices)`."""

    rule: Rule
    values: Values
    active: Booleans
    taken: Booleans
    population: Floats
    """The shares that the reports of a span are drawn from, `(k,)`."""


def draw_crowd(
    rule: Rule,
    *,
    changing: bool,
    newcomers: bool,
    repetitions: int,
    devices: int,
    rng: np.random.Generator,
) -> Crowd:
    """Draw devices; a changing value is drawn again in each pane with probability 1/2.

    With newcomers half of the devices, on average, arrive in the middle, from another population.
    """
    shape = rule.panes, repetitions, devices
    late = rng.random(shape[1:]) < 0.5 if newcomers else np.zeros(shape[1:], dtype=np.bool_)
    ends = np.cumsum([SHARES, NEWCOMERS], axis=1)[:, :-1].astype(np.float32)

    def drawn() -> Values:
        tosses, own = rng.random(late.shape, dtype=np.float32), late.astype(np.int8)
        values = np.zeros(late.shape, dtype=np.int8)
        for place in range(SIZE - 1):
            values += tosses > ends[own, place]
        return values

    values = np.empty(shape, dtype=np.int8)
    for pane in range(rule.panes):
        before = values[pane - 1]
        if pane and changing:
            values[pane] = np.where(rng.random(late.shape) < _CHANGES, drawn(), before)
        else:
            values[pane] = before if pane else drawn()
    active = np.ones(shape, dtype=np.bool_)
    active[: rule.panes // 2, late] = False
    if rule.spread is not None and rule.hours is not None:
        place = (rule.first + np.arange(rule.panes)) % rule.spread[1]
        active[place >= rule.hours] = False
    weight = (rule.panes - rule.panes // 2) / rule.panes
    mixed = (SHARES + weight * NEWCOMERS) / (1.0 + weight) if newcomers else SHARES
    return Crowd(rule, values, active, active & _taking_part(rule, shape, rng), mixed)


def _taking_part(rule: Rule, shape: tuple[int, int, int], rng: np.random.Generator) -> Booleans:
    if rule.spread is None:
        return rng.random(shape) < rule.part
    reports, windows = rule.spread
    taken = np.empty(shape, dtype=np.bool_)
    period = -1
    for pane in range(rule.panes):
        number, place = divmod(rule.first + pane, windows)
        if period < 0 or (number != period and not rule.rolling):
            order = rng.random((*shape[1:], windows), dtype=np.float32).argsort(axis=-1)
            chosen = order < reports
        period = number
        taken[pane] = chosen[..., place]
    return taken


def counts(crowd: Crowd, who: Booleans) -> Integers:
    """Count each value among the chosen devices, `(r, k)`."""
    return _counted(crowd.values, who, SIZE)


def _counted(numbers: Integers | Values, who: Booleans, size: int) -> Integers:
    """Count numbers `(panes, r, devices)` below `size` by repetition: `(r, size)`."""
    of = np.arange(numbers.shape[1])[None, :, None] * size + numbers
    return np.bincount(of[who], minlength=numbers.shape[1] * size).reshape(-1, size)


@cache
def _rows(mechanism: Mechanism) -> Floats:
    """Return the channel, `(k, outputs)`."""
    channel = mechanism.channel()
    table = np.zeros((len(channel.rows), channel.outputs))
    for value, row in enumerate(channel.rows):
        table[value, list(row)] = [float(one) for one in row.values()]
    return table


def fresh_statistics(
    mechanism: Mechanism, reported: Integers, rng: np.random.Generator
) -> Integers:
    """Return the statistics of fresh reports; `counts`, `(r, k)`, of each value."""
    rows = _rows(mechanism)
    counts = np.asarray(sum(rng.multinomial(reported[:, x], row) for x, row in enumerate(rows)))
    return counts @ Listed.of(mechanism).statistics


@dataclass(frozen=True)
class Listed:
    """All reports of a mechanism, by their column in its channel.

    `statistics` has one report's statistic a row, `(outputs, size)`; `codes` are the reports' bytes
    read as integers, ascending, and `numbers` the columns that these belong to.
    """

    reports: NDArray[Any]
    statistics: Integers
    codes: Integers
    numbers: Integers

    @classmethod
    @cache
    def of(cls, mechanism: Mechanism) -> "Listed":
        """Return the reports of a mechanism that has few, of at most 8 bytes each."""
        reports = mechanism.possible_reports()
        statistics = np.zeros((len(reports), mechanism.statistic_size), dtype=np.int64)
        for number, statistic in enumerate(statistics):
            mechanism.accumulate(statistic, reports[number : number + 1])
        codes = _codes(mechanism, reports)
        return cls(reports, statistics, np.sort(codes), np.argsort(codes))

    def numbered(self, mechanism: Mechanism, reports: NDArray[Any]) -> Integers:
        """Return the column numbers of encoded reports, one report a row."""
        return self.numbers[np.searchsorted(self.codes, _codes(mechanism, reports))]


def _codes(mechanism: Mechanism, reports: NDArray[Any]) -> Integers:
    table = np.zeros((len(reports), 8), dtype=np.uint8)
    table[:, : mechanism.report_bytes] = mechanism.encode(reports)
    return table.view("<i8")[:, 0].astype(np.int64)


def held_statistics(
    hold: Hold, crowd: Crowd, rng: np.random.Generator, entropy: SeededEntropy
) -> tuple[Integers, Integers]:
    """Return how often each locked value was reported, `(r, k)`, and the statistics."""
    panes, *shape = crowd.values.shape
    drawing, listed = hold.permanent, Listed.of(hold.permanent)
    ends = np.cumsum(_rows(drawing), axis=1)[:, :-1]
    offset = rng.integers(hold.windows, size=shape)
    epoch, locked, permanent = (np.full(shape, -1) for _ in range(3))
    values, reports = np.empty((panes, *shape), np.int64), np.zeros((panes, *shape), np.int64)
    for pane in range(panes):
        now = (crowd.rule.first + pane + offset) // hold.windows
        begins = crowd.taken[pane] & (now != epoch)
        epoch[begins], locked[begins] = now[begins], crowd.values[pane][begins]
        of = ends[locked[begins]]
        permanent[begins] = (rng.random(len(of))[:, None] > of).sum(axis=1)
        values[pane] = locked
        taken = crowd.taken[pane]
        sent = permanent[taken]
        if hold.chain is not None:
            sent = listed.numbered(drawing, hold.chain.again(listed.reports[sent], entropy))
        reports[pane][taken] = sent
    sums = _counted(reports, crowd.taken, len(listed.reports)) @ listed.statistics
    return _counted(values, crowd.taken, SIZE), sums
