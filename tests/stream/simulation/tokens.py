"""The simulated world with `one_report`: devices that report twice, retry, and miss partitions.

The seventh invariant: of all reports with one token in one window, except late and otherwise
rejected ones, the first by offset is counted and no other, over all partitions. Chunks hold two
tokens, so that a pane has many of them; in half of the worlds a pane has room for few tokens.
"""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from ldpstream.agents.state.classification import REJECTED, Classified
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.records import Head
from ldpstream.agents.state.tokens import decode_tokens
from ldpstream.agents.state.windows import WindowSpec
from ldpstream.mechanisms.wire.frame import encode_frame
from ldpstream.mechanisms.wire.spec import CollectionSpec
from tests.stream.simulation.checks import Checks
from tests.stream.simulation.patched import mutant
from tests.stream.simulation.setting import (
    SYMBOLS,
    Message,
    Report,
    Setting,
    accepted_spec,
    demand,
    make_message,
    make_setting,
    write_final,
)
from tests.stream.simulation.worker import Reader, Watched
from tests.stream.simulation.world import World

WINDOWS = (
    WindowSpec(size_ms=8, hop_ms=8, grace_ms=1, idle_ms=3, future_ms=1, retention_ms=8),
    WindowSpec(size_ms=4, hop_ms=4, grace_ms=0, idle_ms=3, future_ms=1, retention_ms=5),
)
SECRETS = [bytes([device]) * 16 for device in range(7)]


@cache
def token_context(window: int, partitions: int) -> Context:
    size = f"{WINDOWS[window].size_ms}ms"
    mapping = {
        "mechanism": "binary",
        "epsilon": [1.0, 1.0],
        "domain": {"size": SYMBOLS},
        "precision": "1ms",
        "one_report": True,
        "partitions": partitions,
        "window": {"size": size},
    }
    return Context(
        spec=CollectionSpec.from_mapping("simulated", mapping, base=Path()),
        window=WINDOWS[window],
        make_final=write_final,
        chunk=1,
        accept=(accepted_spec(),),
        token_chunk=2,
        tokens=(1 << 25, 6)[window],
    )


class TokenChecks(Checks):
    """The checks of a run, and which tokens are counted in which panes."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.tokens: dict[tuple[int, bytes], int] = {}

    def one_report(self, p: int, outcome: str, report: Report | None) -> None:
        if report is None or outcome not in ("counted", "partition", "repeated", "crowded"):
            return
        context = self.world.context
        own = int.from_bytes(report.token[:4], "little") % self.world.partitions == p
        demand(own == (outcome != "partition"), "(7) a report in another partition")
        key = context.window.pane(report.time_ms), report.token
        siblings = sum(pane == key[0] and of == p for (pane, _), of in self.tokens.items())
        if outcome == "counted":
            demand(key not in self.tokens, "(7) two reports of one token and window")
            demand(siblings < context.tokens_a_pane, "(7) more tokens than a pane takes")
            self.tokens[key] = p
        elif outcome == "crowded":
            demand(key not in self.tokens, "(7) crowded, and counted before")
            demand(siblings >= context.tokens_a_pane, "(7) crowded where there is room")
        elif outcome == "repeated":
            demand(key in self.tokens, "(7) repeated, but none was counted")

    def view(self, reader: Reader, before: Head | None) -> None:
        super().view(reader, before)
        head, held = reader.replica.head, {}
        for name in reader.replica.cells:
            if name.kind == "token":
                for token in decode_tokens(reader.replica.value(name)):
                    held[name.number, int(token).to_bytes(8, "little")] = reader.p
        kept = self.tokens.items()
        want = {key: p for key, p in kept if p == reader.p and key[0] >= head.closed}
        demand(head is before or held == want, "(7) the tokens stored are not the ledger's")


class TokenWorld(World):
    """A world of devices with tokens; the spec fixes its partitions, so none is added."""

    checks_class = TokenChecks

    def choose_setting(self, rng: random.Random) -> Setting:
        context = token_context(rng.randrange(len(WINDOWS)), rng.choice([1, 2, 3]))
        return replace(make_setting(rng), context=context)

    def choose_partitions(self, rng: random.Random) -> int:
        return self.context.spec.one_report.partitions

    def do_grow(self) -> None:
        pass

    def do_produce(self) -> None:
        rng, spec = self.rng, self.context.spec
        if rng.random() < 0.05:
            # Reports without tokens belong to another spec.
            other = make_message(rng, self.now_ms).value
            self.source[self.any_partition()].append(Message(other, (None,)))
            return
        times_ms = sorted(self.now_ms + rng.randint(-5, 2) for _ in range(rng.randint(1, 4)))
        rows = []
        for time_ms in times_ms:
            token = spec.tokens(rng.choice(SECRETS), np.array([time_ms]))
            rows.append((time_ms, token, int(spec.one_report.partition(token)[0])))
        p = rng.choice([rows[0][2]] * 9 + [self.any_partition()])
        if rng.random() < 0.9:
            rows = [row for row in rows if row[2] == p] or rows[:1]
        symbols = [rng.choice([0, 1] * 9 + [7]) for _ in rows]
        payload = [[y, *token[0]] for y, (_, token, _) in zip(symbols, rows, strict=True)]
        value = encode_frame(
            spec.fingerprint,
            np.array([time_ms for time_ms, _, _ in rows]),
            np.array(payload, dtype=np.uint8),
        )
        reports = [
            Report(time_ms, y, token.tobytes())
            for y, (time_ms, token, _) in zip(symbols, rows, strict=True)
        ]
        self.source[p].append(Message(value, tuple(reports)))
        self.say("produce", p, self.source[p][-1])
        if rng.random() < 0.3:
            # A retry, so that the message comes twice.
            self.source[p].append(self.source[p][-1])


@mutant("7 tokens forgotten at a takeover", 6, TokenWorld)
class Forgotten(Watched):
    """An owner that takes over does not know which tokens were counted before."""

    def prepare(self) -> None:
        super().prepare()
        for pane in self._cells.tokens._panes.values():
            pane.runs = []


@mutant("7 any partition", 4, TokenWorld)
class AnyPartition(Watched):
    """Reports are counted whatever partition their token belongs to."""

    def _classify(self, *args: object) -> Classified:
        made = super()._classify(*args)
        good = made.good | (made.why == REJECTED["partition"])
        return replace(made, good=good)


@mutant("7 tokens of flushes only", 13, TokenWorld)
class KeptTokens(Watched):
    """Repeats are found among flushed tokens alone."""

    def _classify(self, *args: object) -> Classified:
        panes = self._cells.tokens._panes
        runs = {pane: held.runs for pane, held in panes.items()}
        for held in panes.values():
            held.runs = [run for run in held.runs if self.flight is None]
        made = super()._classify(*args)
        for pane, kept in runs.items():
            panes[pane].runs = kept
        return made
