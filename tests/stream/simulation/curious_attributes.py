"""The curious world with records: the attacker asks for each attribute.

Every report has a symbol of its own and is about one of three attributes, some of which are rarely
drawn. The answer about an attribute shows a set of reports about it, which are isolated as in
`tests.stream.simulation.curious`. Its span contains what was asked for, and a final about it holds
all reports about it in its span.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Final

from ldpstream.agents.state.closing import Publication
from ldpstream.agents.state.context import Context, WindowTotals
from ldpstream.agents.state.replica import BehindError
from ldpstream.agents.state.view import Snapshot, add_up
from ldpstream.agents.web.estimates import check_span, is_final
from ldpstream.agents.web.requests import AnswerError
from ldpstream.mechanisms.wire.spec import CollectionSpec
from tests.stream.harness import make_context
from tests.stream.simulation.curious import SYMBOLS, WINDOWS, CuriousChecks, Patched
from tests.stream.simulation.setting import Report, Setting, demand, write_final

ATTRIBUTES: Final = 3
VALUES: Final = SYMBOLS // ATTRIBUTES


@cache
def _spec() -> CollectionSpec:
    mapping = {
        "mechanism": "randomized-response",
        "epsilon": 1.0,
        "domain": {"attributes": {name: {"size": VALUES} for name in "abc"}},
        "precision": "1ms",
    }
    return CollectionSpec.from_mapping("simulated", mapping, base=Path())


@cache
def _context(window: int, finals_a_step: int, minimum: int, release_ms: int) -> Context:
    keys = {"finals_a_step": finals_a_step, "minimum": minimum, "release_ms": release_ms}
    return make_context(WINDOWS[window], spec=_spec(), make_final=write_attributes, chunk=1, **keys)


def write_attributes(totals: WindowTotals) -> bytes:
    """Write a final's content without a statistic, and that about each attribute."""
    of_each = [json.loads(write_final(one)) for one in totals.attributes]
    start_ms, end_ms, _, *counters, _ = json.loads(write_final(totals))
    nothing = [0] * (ATTRIBUTES * VALUES)
    return json.dumps([start_ms, end_ms, nothing, *counters, True, of_each]).encode()


class AttributeChecks(CuriousChecks):
    """The checks of a run, and the sets of reports by attribute that the attacker has learnt."""

    def read_report(self, time_ms: int, row: bytes) -> Report:
        return Report(time_ms, row[0] * VALUES + row[1])

    def publish(self, publication: Publication) -> None:
        super().publish(publication)
        told = json.loads(publication.content)
        for attribute, (_, _, statistic, *_, withheld) in enumerate(told[8]):
            self.learn_about(attribute, statistic, withheld=withheld)

    def learn_about(self, attribute: int, statistic: Sequence[int], *, withheld: bool) -> None:
        demand(not (withheld and any(statistic)), "(8) a withheld answer tells something")
        self.learn([0] * (attribute * VALUES) + list(statistic))

    def finish(self) -> None:
        super().finish()
        pane_ms = self.world.context.window.pane_ms
        for number, content in self.published.items():
            start_ms, end_ms = self.world.context.window.span(number)
            for attribute, (first_ms, last_ms, statistic, n, *_, withheld) in enumerate(
                json.loads(content)[8]
            ):
                demand(first_ms <= start_ms and last_ms == end_ms, "(8) not the final's span")
                panes = range(first_ms // pane_ms, last_ms // pane_ms)
                symbols = range(attribute * VALUES, (attribute + 1) * VALUES)
                want = [sum(of[p, s] for p in panes for of in self.counts) for s in symbols]
                if not withheld:
                    demand((statistic, n) == (want, sum(want)), "(8) a final is not the ledger's")


class AttributeWorld(Patched):
    """A curious world of records."""

    checks_class = AttributeChecks

    def __init__(self, seed: int, *, kafka: bool = True) -> None:
        super().__init__(seed, kafka=kafka)
        rng = random.Random(seed)
        left = [list(range(VALUES * a, VALUES * (a + 1))) for a in range(ATTRIBUTES)]
        weights = [rng.choice([1, 4, 20]) for _ in left]
        drawn = (rng.choices(left, weights)[0] for _ in range(SYMBOLS))
        self.symbols = iter([some.pop(0) for some in drawn if some])

    def choose_setting(self, rng: random.Random) -> Setting:
        context = _context(
            rng.randrange(len(WINDOWS)), rng.choice([1, 16]), rng.choice([2, 3, 5]), 0
        )
        return Setting(context, start_ms=rng.choice([0, -5_000]), ahead_ms=0)

    def write(self, symbol: int) -> list[int]:
        return [*divmod(symbol, VALUES)]

    def ask_span(self, served: SimpleNamespace, span: tuple[int, int]) -> None:
        with suppress(AnswerError, BehindError):
            check_span(served, *span)
            found = self.answer(served.replicas, *span, final=is_final(served, span[1]))
            self.learn(found, span)

    def learn(self, found: Snapshot, span: tuple[int, int]) -> None:
        totals = add_up(self.context, found)
        for attribute, one in enumerate(totals.attributes):
            demand(one.start_ms <= span[0] and span[1] <= one.end_ms, "(8) less than asked for")
            statistic = one.statistic.tolist()
            demand(one.withheld or sum(statistic) == one.n, "(8) n is not the answer's")
            demand(one.n <= one.among, "(8) fewer reports than about one attribute")
            self.checks.learn_about(attribute, statistic, withheld=one.withheld)
