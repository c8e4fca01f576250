"""The simulated world with `minimum`, and an attacker who asks everything and subtracts.

The eighth invariant. Every report has a symbol of its own, so each answer shows which reports it
counts. Whatever the attacker adds and subtracts, the smallest sets that can be isolated are those
of reports that are in the same answers: each has `minimum` members, or is in no answer at all. The
span of an answer contains the span that was asked for.

All workers are asked at any moment, whether they are behind or not: for windows, panes and spans,
as over HTTP, and for the documents, final or not, that they would publish.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from ldpstream.agents.state.closing import Publication
from ldpstream.agents.state.context import Context, WindowTotals
from ldpstream.agents.state.replica import BehindError, Replica
from ldpstream.agents.state.view import Snapshot, add_up, answer
from ldpstream.agents.state.windows import WindowSpec
from ldpstream.agents.web.estimates import check_span, is_final, kept_windows
from ldpstream.agents.web.requests import AnswerError
from ldpstream.mechanisms.wire.frame import encode_frame
from ldpstream.mechanisms.wire.spec import CollectionSpec
from tests.stream.harness import make_context
from tests.stream.simulation.checks import Checks
from tests.stream.simulation.patched import PatchedWorld
from tests.stream.simulation.setting import Message, Report, Setting, demand, write_final
from tests.stream.simulation.worker import Worker
from tests.stream.simulation.world import World

SYMBOLS = 256
WINDOWS = (
    WindowSpec(size_ms=8, hop_ms=4, grace_ms=1, idle_ms=3, future_ms=1, retention_ms=6),
    WindowSpec(size_ms=4, hop_ms=4, grace_ms=0, idle_ms=3, future_ms=1, retention_ms=5),
    WindowSpec(size_ms=12, hop_ms=8, grace_ms=1, idle_ms=3, future_ms=1, retention_ms=30),
    WindowSpec(size_ms=6, hop_ms=2, grace_ms=3, idle_ms=None, future_ms=1, retention_ms=1_000),
    WindowSpec(size_ms=20, hop_ms=20, grace_ms=5, idle_ms=9, future_ms=9, retention_ms=60),
)


@cache
def _spec() -> CollectionSpec:
    mapping = {
        "mechanism": "randomized-response",
        "epsilon": 1.0,
        "domain": {"size": SYMBOLS},
        "precision": "1ms",
    }
    return CollectionSpec.from_mapping("simulated", mapping, base=Path())


@cache
def _context(window: int, finals_a_step: int, minimum: int, release_ms: int | None) -> Context:
    keys = {"finals_a_step": finals_a_step, "minimum": minimum, "release_ms": release_ms}
    return make_context(WINDOWS[window], spec=_spec(), make_final=write_final, chunk=1, **keys)


def isolated(masks: set[int]) -> list[int]:
    """Return the smallest sets that sums and differences of these sets may isolate, as bits."""
    everything = 0
    for mask in masks:
        everything |= mask
    classes = [everything] if everything else []
    for mask in masks:
        cut = [part for one in classes for part in (one & mask, one & ~mask)]
        classes = [part for part in cut if part]
    return classes


def demand_none_isolated(masks: set[int], minimum: int, rule: str) -> None:
    """Demand that sums and differences of these sets isolate at least `minimum` reports."""
    for found in isolated(masks):
        demand(
            found.bit_count() >= minimum,
            f"{rule} {found.bit_count()} reports can be isolated, minimum {minimum}: "
            f"{[symbol for symbol in range(SYMBOLS) if found >> symbol & 1]}",
        )


class CuriousChecks(Checks):
    """The checks of a run, and the sets of reports that the attacker has learnt."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.told: set[int] = set()
        self.spans = 0

    def publish(self, publication: Publication) -> None:
        super().publish(publication)
        told = json.loads(publication.content)
        statistic, withheld = told[2], told[7]
        self.learn(statistic)
        demand(not (withheld and any(statistic)), "(8) a withheld final tells something")

    def learn(self, statistic: Sequence[int]) -> None:
        demand(set(statistic) <= {0, 1}, "(8) an answer counts a report twice")
        self.told.add(sum(1 << symbol for symbol, count in enumerate(statistic) if count))

    def stands_for(self, number: int, span: tuple[int, int], *, withheld: bool) -> bool:
        start_ms, end_ms = self.world.context.window.span(number)
        if withheld:
            return span == (start_ms, end_ms)
        return span[0] <= start_ms and span[1] == end_ms

    def finish(self) -> None:
        super().finish()
        demand_none_isolated(self.told, self.world.context.minimum, "(8)")


class CuriousWorld(World):
    """A world whose workers are asked all the time."""

    checks_class = CuriousChecks

    def __init__(self, seed: int, *, kafka: bool = True) -> None:
        self.symbols = iter(range(SYMBOLS))
        # The meaning of cells is the same in all worlds, and costs more to check than answers.
        self.shadow = seed % 8 == 0
        super().__init__(seed, kafka=kafka)
        self.weights |= {"ask": 15 * self.rng.choice([1, 2]), "produce": self.rng.choice([6, 20])}
        self.weights["grow"] *= 3
        self.burst = self.rng.choice([1, 2, 4, 12])

    def choose_setting(self, rng: random.Random) -> Setting:
        context = _context(
            rng.randrange(len(WINDOWS)),
            rng.choice([1, 16]),
            rng.choice([2, 2, 3, 5]),
            rng.choice([0, 0, 3]),
        )
        return Setting(context, start_ms=rng.choice([0, -5_000]), ahead_ms=0)

    def choose_partitions(self, rng: random.Random) -> int:
        return rng.choice([1, 2, 2, 3])

    def do_produce(self) -> None:
        rng, p = self.rng, self.any_partition()
        times = sorted(
            self.now_ms + rng.randint(-rng.choice([1, 4, 7]), 2)
            for _ in range(rng.randint(1, self.burst))
        )
        reports = [Report(t, symbol) for t, symbol in zip(times, self.symbols, strict=False)]
        if reports:
            value = encode_frame(
                self.context.spec.fingerprint,
                np.array([report.time_ms for report in reports]),
                np.array([self.write(report.symbol) for report in reports], dtype=np.uint8),
            )
            self.source[p].append(Message(value, tuple(reports)))
            self.say("produce", p, self.source[p][-1])

    def write(self, symbol: int) -> list[int]:
        """Return the payload of a report."""
        return [symbol]

    def do_ask(self) -> None:
        worker = self.rng.choice(sorted(self.workers.values(), key=lambda one: one.name))
        self.ask(worker.replicas[: worker.known])

    def ask(self, replicas: Sequence[Replica]) -> None:
        """Ask what HTTP answers and what provisional documents hold of some spans."""
        if any(replica.head is None for replica in replicas):
            return
        rng, window = self.rng, self.context.window
        config = SimpleNamespace(name=self.context.spec.name)
        served = SimpleNamespace(context=self.context, replicas=replicas, config=config)
        spans: list[tuple[int, int]] = []
        # A worker that is behind lists no windows; it can be asked for spans nevertheless.
        with suppress(AnswerError):
            spans += [(info.start_ms, info.end_ms) for info in kept_windows(served)][-6:]
        latest = window.pane(self.now_ms) + 1
        for _ in range(4):
            first = latest - rng.randint(1, 8)
            end = first + rng.choice([1, 1, 2, 3])
            spans.append((window.start(first), window.start(end)))
        for span in spans:
            self.ask_span(served, span)

    def ask_span(self, served: SimpleNamespace, span: tuple[int, int]) -> None:
        try:
            check_span(served, *span)
            found = self.answer(served.replicas, *span, final=is_final(served, span[1]))
        except (AnswerError, BehindError):
            return
        told = self.read(add_up(self.context, found))
        wide = (found.start_ms, found.end_ms)
        demand(wide[0] <= span[0] and span[1] <= wide[1], "(8) less than what was asked for")
        if not found.withheld:
            statistic = told.statistic.tolist()
            demand(sum(statistic) == told.n, "(8) n is not the answer's")
            self.checks.learn(statistic)

    def read(self, told: WindowTotals) -> WindowTotals:
        """Learn what totals show besides their statistic, and return them."""
        return told

    def answer(
        self, replicas: Sequence[Replica], start_ms: int, end_ms: int, *, final: bool
    ) -> Snapshot:
        return answer(self.context, replicas, start_ms, end_ms, final=final)

    def round(self, workers: list[Worker]) -> None:
        super().round(workers)
        for worker in workers:
            self.ask(worker.replicas[: worker.known])


class Patched(PatchedWorld, CuriousWorld):
    """A curious world with functions of the product replaced."""
