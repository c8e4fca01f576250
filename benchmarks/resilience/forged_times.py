"""Whether forged event times make honest reports late.

    python -m benchmarks.resilience.forged_times

Ten minutes of simulated time on the state machine: 180 honest reports a second, each arriving
within `grace` of its event time, and 100 forged ones dated as far ahead as is accepted. Prints a
table: for a worker at the log's end, and for one that is away for half of every two minutes and
catches up; with the broker's timestamps, with the senders', and, for comparison, without the bound
by arrival.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from ldpstream.agents.state.batch import Arrivals, Dates
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.partition import Partition
from ldpstream.agents.state.replica import Replica
from ldpstream.agents.state.windows import WindowSpec
from ldpstream.mechanisms.wire.spec import CollectionSpec

START_MS: Final = 1_800_000_000_000
HONEST_A_SECOND: Final = 180
FORGED_A_SECOND: Final = 100
AWAY_SECONDS: Final = 60
BATCH: Final = 1_000
RULES: Final = ("LogAppendTime", "CreateTime", "no bound")
WINDOWS: Final = {
    "1m, defaults": WindowSpec(size_ms=60_000, hop_ms=60_000, grace_ms=60_000, future_ms=60_000),
    "10s, grace = 5s": WindowSpec(size_ms=10_000, hop_ms=10_000, grace_ms=5_000, future_ms=5_000),
}


class Sent(NamedTuple):
    """A report on the broker: when it arrived, its event time, and whether it is forged."""

    arrived_ms: int
    time_ms: int
    forged: bool


class Late(NamedTuple):
    """How many honest reports were sent, and how many of all were late."""

    honest: int
    late: int


def stream(window: WindowSpec, seconds: int, *, seed: int = 1) -> Iterator[Sent]:
    """Yield what arrives, in order; event times are cut to the second."""
    rng = np.random.default_rng(seed)
    for second in range(seconds):
        for at_ms in np.sort(rng.integers(0, 1_000, HONEST_A_SECOND + FORGED_A_SECOND)).tolist():
            arrived_ms = START_MS + 1_000 * second + at_ms
            if rng.random() < FORGED_A_SECOND / (HONEST_A_SECOND + FORGED_A_SECOND):
                ahead_ms = arrived_ms + window.future_ms
                yield Sent(arrived_ms, ahead_ms - ahead_ms % 1_000, forged=True)
            else:
                sent_ms = arrived_ms - int(rng.integers(0, window.grace_ms + 1))
                yield Sent(arrived_ms, sent_ms + -sent_ms % 1_000, forged=False)


def measure(window: WindowSpec, rule: str, *, seconds: int, away: bool) -> Late:
    """Let a worker count the stream; forged reports are never late, so late ones are honest."""
    mapping = {"mechanism": "binary", "epsilon": [1.0, 1.0], "domain": {"size": 2}}
    spec = CollectionSpec.from_mapping("bench", mapping, base=Path())
    context = Context(spec=spec, window=window, make_final=lambda _: b"")
    replica = Replica(context, 0)
    replica.read([], position=0, end=0)
    part = Partition.load(context, 0, [replica], epoch=1)
    assert part is not None
    honest, before = 0, list[int]()
    for records, now_ms, since_ms in _batches(window, seconds, away=away):
        honest += sum(not sent.forged for sent in records)
        frames = [_frame(spec, sent.time_ms) for sent in records]
        dates = Dates([sent.arrived_ms for sent in records], rule == "LogAppendTime")
        if rule == "CreateTime":
            created_ms = [sent.arrived_ms - sent.arrived_ms % 1_000 for sent in records]
            dates = Dates(created_ms, before=before)
            before = list(dates.up_to(len(records)))
        arrived = replace(dates, since_ms=since_ms).arrivals(now_ms=now_ms)
        if rule == "no bound":
            arrived = Arrivals(now_ms, now_ms + window.future_ms)
        part.ingest(list(enumerate(frames, start=part.next)), now_ms=now_ms, arrived=arrived)
    return Late(honest, part.work.late)


@cache
def _frame(spec: CollectionSpec, time_ms: int) -> bytes:
    return spec.frame(np.zeros(1, dtype=np.int64), times_ms=np.array([time_ms]))


def _batches(
    window: WindowSpec, seconds: int, *, away: bool
) -> Iterator[tuple[list[Sent], int, int | None]]:
    """Yield reports read together, when they are read, and when the log's end was last seen."""
    waiting: list[Sent] = []
    now_ms, since_ms = START_MS, None
    for sent in stream(window, seconds):
        while sent.arrived_ms >= now_ms + 100:
            now_ms += 100
            if away and (now_ms - START_MS) // 1_000 % (2 * AWAY_SECONDS) < AWAY_SECONDS:
                since_ms = None
                continue
            while waiting:
                yield waiting[:BATCH], now_ms, since_ms
                waiting, since_ms = waiting[BATCH:], None
            since_ms = now_ms
        waiting.append(sent)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.resilience.forged_times")
    parser.add_argument("--seconds", type=int, default=600, help="of simulated time")
    asked = parser.parse_args()
    print(f"{'window':<18} {'worker':<12} {'arrival':<14} {'honest':>8} {'late':>8}")
    for name, window in WINDOWS.items():
        for away in (False, True):
            for rule in RULES:
                found = measure(window, rule, seconds=asked.seconds, away=away)
                worker = "catches up" if away else "at the end"
                print(f"{name:<18} {worker:<12} {rule:<14} {found.honest:>8,} {found.late:>8,}")


if __name__ == "__main__":
    main()
