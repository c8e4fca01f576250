"""The setting of a run: a collection of two symbols, small windows, and good and bad messages."""

import json
import random
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ldpstream.agents.state.context import Context, WindowTotals
from ldpstream.agents.state.windows import WindowSpec
from ldpstream.mechanisms.wire.frame import encode_frame
from ldpstream.mechanisms.wire.spec import CollectionSpec

SYMBOLS = 2
FOREIGN = bytes(8)
PASSED = "passed"
"""The outcome of a message that is left to the state of an accepted spec."""
WINDOWS = (
    WindowSpec(size_ms=8, hop_ms=4, grace_ms=1, idle_ms=3, future_ms=1, retention_ms=6),
    WindowSpec(size_ms=4, hop_ms=4, grace_ms=0, idle_ms=3, future_ms=0, retention_ms=5),
    WindowSpec(size_ms=12, hop_ms=8, grace_ms=1, idle_ms=3, future_ms=1, retention_ms=7),
    WindowSpec(size_ms=6, hop_ms=4, grace_ms=1, idle_ms=None, future_ms=1, retention_ms=6),
)


class Report(NamedTuple):
    """A report as sent: event time in epoch ms, symbol (perhaps out of range), and token."""

    time_ms: int
    symbol: int
    token: bytes = b""


class Message(NamedTuple):
    """A message of the source; anything but a frame of our spec is one report, None."""

    value: bytes | None
    reports: tuple[Report | None, ...]


@dataclass(frozen=True)
class Setting:
    """The collection, the beginning of event time, and how far the wall clock is ahead of it."""

    context: Context
    start_ms: int
    ahead_ms: int


@cache
def small_spec(name: str = "simulated") -> CollectionSpec:
    mapping = {
        "mechanism": "binary",
        "epsilon": [1.0, 1.0],
        "domain": {"size": SYMBOLS},
        "precision": "1ms",
    }
    return CollectionSpec.from_mapping(name, mapping, base=Path())


def accepted_spec() -> CollectionSpec:
    """Return a spec whose messages another state counts."""
    return small_spec("accepted")


def write_final(totals: WindowTotals) -> bytes:
    """Return a final's content: everything in the totals."""
    statistic = totals.statistic.tolist()
    told = [totals.start_ms, totals.end_ms, statistic, totals.n, totals.late, totals.rejected]
    return json.dumps([*told, totals.lost.offsets, totals.withheld]).encode()


@cache
def _context(window: int, finals_a_step: int) -> Context:
    return Context(
        spec=small_spec(),
        window=WINDOWS[window],
        make_final=write_final,
        chunk=1,
        accept=(accepted_spec(),),
        finals_a_step=finals_a_step,
    )


def make_setting(rng: random.Random) -> Setting:
    return Setting(
        context=_context(rng.choice([0, 0, 0, 1, 2, 3]), rng.choice([1, 16])),
        start_ms=rng.choice([0, 1_270_000_000_000, -5_000]),
        ahead_ms=rng.choice([0, 0, 0, 500_000_000_000]),
    )


def make_message(rng: random.Random, now_ms: int) -> Message:
    """Return a frame of one or two reports around now; sometimes a message to be rejected."""
    if rng.random() < 0.05:
        fingerprint = rng.choice([None, FOREIGN])
        if fingerprint is None:
            return Message(rng.choice([None, b"", b"no frame"]), (None,))
        return Message(encode_frame(fingerprint, np.array([now_ms]), _payload([1])), (None,))
    reports = [
        Report(now_ms + rng.randint(-7, 3), rng.randrange(SYMBOLS))
        for _ in range(rng.randint(1, 2))
    ]
    if rng.random() < 0.05:
        bad = rng.choice([Report(reports[0].time_ms, 7), Report(rng.choice([-1, 1]) << 62, 0)])
        reports.append(bad)
    reports.sort(key=lambda report: report.time_ms)
    times_ms = np.array([report.time_ms for report in reports])
    value = encode_frame(
        small_spec().fingerprint, times_ms, _payload([report.symbol for report in reports])
    )
    return Message(value, tuple(reports))


def make_uncounted(
    rng: random.Random, now_ms: int, *, wall_ms: int, accepted: bool | None = None
) -> Message:
    """Return a message of an `accepted` spec (None: perhaps), or else one to be rejected."""
    if accepted is None:
        accepted = rng.random() < 0.3
    fingerprint, time_ms, symbol = rng.choice(
        [(accepted_spec().fingerprint, now_ms, 1)]
        if accepted
        else [
            (FOREIGN, now_ms, 1),
            (small_spec().fingerprint, now_ms, 7),
            (small_spec().fingerprint, wall_ms + 1_000, 0),
            (small_spec().fingerprint, -1 << 62, 0),
            (None, now_ms, 0),
        ]
    )
    if fingerprint is None:
        return Message(rng.choice([None, b"", b"no frame"]), (None,))
    own = fingerprint == small_spec().fingerprint
    value = encode_frame(fingerprint, np.array([time_ms]), _payload([symbol]))
    return Message(value, (Report(time_ms, symbol) if own else None,))


def _payload(symbols: list[int]) -> np.ndarray:
    return np.array(symbols, dtype=np.uint8)[:, None]


class ViolationError(AssertionError):
    """An invariant does not hold."""


def demand(holds: bool, message: str) -> None:
    if not holds:
        raise ViolationError(message)
