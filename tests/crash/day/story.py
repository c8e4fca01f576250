"""The events of the day, in their order, and the checks at its end."""

import asyncio
import shutil
import time
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from ldpstream.agents.broker.metadata import describe
from ldpstream.agents.config import Config
from tests.brokers import Broker
from tests.crash.day.counts import ALLOWED_SECONDS, Finals, State, check_counts, check_finals
from tests.crash.day.counts import published as finals_of
from tests.crash.day.devices import Devices
from tests.crash.day.fleet import WORKERS, Fleet
from tests.crash.day.reasons import Facts, check_delays, check_told
from tests.crash.day.setting import (
    COLLECTIONS,
    HOLDING,
    LIVE,
    SIZE,
    VALUES,
    WAITING,
    Span,
)
from tests.crash.day.watch import Watch
from tests.lab import Lab

EVENTS = (
    *("withheld", "restart", "kill", "refused", "idle", "size", "value", "partitions"),
    *("restore", "cluster", "erase"),
)

_LATE_SECONDS = 20.0
"""How long to wait for finals that are overdue."""


class Day:
    """Three collections on one broker, `here`, and later on another, `there`."""

    def __init__(
        self,
        here: Broker,
        there: Broker,
        folder: Path,
        *,
        seed: int,
        patience_seconds: float = 0.0,
    ) -> None:
        """With `patience_seconds` everything may take so much longer, as on a busy machine."""
        self.watch = Watch(list(COLLECTIONS))
        self.fleet = Fleet(here, folder, self.watch)
        self.events: list[tuple[str, float, list[str]]] = []
        """What happened, how long it took, and the reasons given meanwhile."""
        self.counts: dict[str, tuple[int, int, int]] = {}
        self.finals: dict[str, tuple[int, float, float]] = {}
        self.delayed = 0
        """How many finals came after their windows' idle time, with a reason."""
        self.devices = Devices(self.fleet.lab.config.collections, seed=seed)
        self._here, self._there, self._folder = here, there, folder
        self._patience_seconds = patience_seconds
        self._states = {name: [State(one)] for name, one in self._config.collections.items()}
        """By collection, those that count now: its own first."""
        self._past: list[State] = []
        self._published: Finals = {}
        self._problems: list[str] = []
        self._rejected: Counter[str] = Counter()
        self._unfinished = False
        self._late: set[str] = set()
        self._held: list[Span] = []
        self._added: list[Span] = []
        self._stack = AsyncExitStack()

    @property
    def _config(self) -> Config:
        return self._lab.config

    @property
    def _lab(self) -> Lab:
        return self.fleet.lab

    def close(self) -> None:
        """End all processes and threads."""
        self.watch.stop()
        self.fleet.end()

    async def live(self, events: list[str], *, pause_seconds: float) -> list[str]:
        """Live through these events, and return what did not hold."""
        async with self._stack:
            await self.fleet.start()
            await self._send()
            await asyncio.sleep(pause_seconds)
            for name in [name for name in EVENTS if name in events]:
                self._unfinished = not await self._happen(name, pause_seconds)
                if self._unfinished:
                    break
            await self.devices.stop()
            if not self._unfinished:
                await self._check_finals()
                await self._check_collections(list(self._config.collections))
                self._check_reasons()
        self._problems += self.fleet.problems
        self._problems += [f"an answer was {error}" for error in self.watch.errors]
        if "Traceback" in (log := self.fleet.log()):
            at = log.index("Traceback")
            self._problems.append(f"a worker logged: {log[at : at + 3000]}")
        return self._problems

    async def _happen(self, name: str, pause_seconds: float) -> bool:
        """Let an event happen; return False if it did not end, and nothing can follow it."""
        began, ended = time.time(), True
        try:
            await getattr(self, f"_{name}")()
        except AssertionError as error:
            self._problems.append(f"{name} did not end: {error}")
            ended = False
        await asyncio.sleep(pause_seconds)
        seconds, reasons = time.time() - began, self.watch.reasons(began)
        self.events.append((name, seconds, reasons))
        said = "" if ended else f"{self._problems[-1]}; "
        print(f"{name}: {seconds:.0f} s; {said}{reasons or 'no reasons'}", flush=True)
        return ended

    # --- events ---------------------------------------------------------------------------------

    async def _withheld(self) -> None:
        """Of `places` open windows are never shown, however many reports come."""
        said = await self.fleet.command("query", self.fleet.first.url, "places")
        if "minimum_block" not in said:
            self._problems.append(f"query does not say that minimum_block hides it: {said}")

    async def _restart(self) -> None:
        await self.fleet.restart()

    async def _kill(self) -> None:
        await self.fleet.kill()

    async def _refused(self) -> None:
        """For a while one partition of each collection has only messages that nobody counts."""
        self.devices.old = frozenset((name, 0) for name in self._config.collections)
        await asyncio.sleep(2 * ALLOWED_SECONDS)
        self.devices.old = frozenset()

    async def _idle(self) -> None:
        """Without `idle` windows wait for a partition that only has messages nobody counts."""
        began, names = time.time(), frozenset({"places"})
        self.fleet.edit("places", (LIVE, WAITING))
        await self.fleet.restart()
        since, self.devices.old = time.time(), frozenset({("places", 0)})
        await asyncio.sleep(ALLOWED_SECONDS)
        told = [one for one in self.watch.told if one.at >= since and one.name == "places"]
        for reason in ("idle is off", "another worker owns it"):
            if not any(one.partition == 0 and reason in one.reason for one in told):
                self._problems.append(f"nobody said of partition 0 of places: {reason}")
        self.devices.old = frozenset()
        self.fleet.edit("places", (WAITING, LIVE))
        await self.fleet.restart()
        self.fleet.halts.append(Span(since, time.time(), names))
        self._held.append(Span(began, time.time(), names))

    async def _size(self) -> None:
        began = time.time()
        await self.fleet.stop()
        self.fleet.edit("people", (SIZE, 'size = "15s"'))
        await self.fleet.start()
        (before,) = self._states["people"]
        self._past.append(replace(before, until=began))
        self._states["people"] = [State(self._config.collections["people"], since=began)]

    async def _value(self) -> None:
        shutil.copy(self._lab.file, self._folder / "accepted.toml")
        more = VALUES.replace("]", ', "tram"]')
        accept = 'accept = ["accepted.toml"]\n'
        self.fleet.edit("trips", (VALUES, more), ("minimum = 1\n", f"minimum = 1\n{accept}"))
        await self.fleet.restart()
        (before,) = self._states["trips"]
        self._states["trips"] = [State(self._config.collections["trips"], time.time()), before]
        self.devices.current["trips"] = self._config.collections["trips"]
        # Until the last windows of the old spec are final, and nothing of it comes any more.
        await asyncio.sleep(ALLOWED_SECONDS)
        self.fleet.edit("trips", (accept, ""))
        await self.fleet.restart()
        # From now on nobody reads the old state, and a back-up leaves it out.
        problems, rows, rejected = await check_counts(
            self._lab, [before], self.devices.sent["trips"]
        )
        self._problems += problems
        self.counts |= rows
        self._rejected["trips"] += rejected
        self._past.append(before)
        self._states["trips"].remove(before)

    async def _partitions(self) -> None:
        before = self._config.collections["places"].partitions
        began, total = time.time(), before + 3
        message = f"restarted with {total}"
        await self.fleet.add_partitions("places", total)
        self._late.add("places")
        await asyncio.sleep(3)
        await self._producer.client.force_metadata_update()
        self.devices.partitions["places"] = total
        # Windows wait until the restart, so it follows soon.
        await asyncio.sleep(8)
        told = [one for one in self.watch.told if one.at >= began and message in one.text]
        if len({one.url for one in told if one.name == "places"}) < WORKERS:
            self._problems.append(f"not all workers said to be {message} partitions")
        self.fleet.edit("places", (f"partitions = {before}", f"partitions = {total}"))
        await self.fleet.restart()
        self._states["places"] = [State(self._config.collections["places"])]
        # No window closes from when that is told until all workers have been restarted.
        names = frozenset({"places"})
        self._added.append(Span(began, time.time() + 1, names))
        if told:
            self.fleet.halts.append(Span(told[0].at, time.time(), names))

    async def _restore(self) -> None:
        """Restore one collection while the others only wait."""
        file = self._folder / "trips.backup"
        await self.fleet.command("backup", "-c", self._lab.file, "trips", file)
        await asyncio.sleep(ALLOWED_SECONDS)
        await self.fleet.stop()
        await self._lab.delete(self._config.collections["trips"].topics.changelog)
        await self._restored("trips", file)
        await self.fleet.start()

    async def _restored(self, name: str, file: Path) -> None:
        words = ["reset", "-c", self._lab.file, "--restore", file, "--yes", name]
        await self.fleet.command(*words)

    async def _cluster(self) -> None:
        """Move all collections, as docs/how-to/back-up-and-restore.md says."""
        names, began = list(self._config.collections), time.time()
        steps: list[float] = []
        # 1. Windows are held open.
        for name in names:
            self.fleet.edit(name, (LIVE, HOLDING))
        await self.fleet.restart()
        steps.append(time.time() - began)
        # 2. Devices send there.
        text = self._lab.file.read_text()
        new = self._lab.file.with_name("new.toml")
        new.write_text(text.replace(self._here.bootstrap, self._there.bootstrap))
        first = self._lab.start_worker(file=new)
        await asyncio.to_thread(first.wait_ready)
        assert await asyncio.to_thread(first.terminate) == 0
        first.kill()
        await self.devices.stop()
        self._published |= await finals_of(self._lab, names)
        old = self._lab.file
        self._lab.file = new
        self._lab.reload()
        await self._send()
        steps.append(time.time() - began)
        # 3. The rest is counted.
        self._lab.file = old
        self._lab.reload()
        await self.fleet.drained()
        await self.fleet.stop()
        for name in names:
            file = self._folder / f"{name}.backup"
            said = await self.fleet.command("backup", "-c", old, name, file)
            assert "it can move" in said, said
        self._published = await finals_of(self._lab, names) | self._published
        steps.append(time.time() - began)
        # 4. The state goes on there.
        self._lab.file = new
        self._lab.reload()
        for name in names:
            await self._restored(name, self._folder / f"{name}.backup")
        await self.fleet.start()
        steps.append(time.time() - began)
        # 5. Windows close.
        await self.fleet.drained()
        for name in names:
            self.fleet.edit(name, (HOLDING, LIVE))
        await self.fleet.restart()
        self.fleet.halts.append(Span(began, time.time()))
        self._held.append(Span(began, time.time()))
        print("steps ended after " + ", ".join(f"{one:.0f}" for one in steps) + " s", flush=True)

    async def _erase(self) -> None:
        shutil.copy(self._lab.file, self._folder / "erased.toml")
        topics = self._config.collections["people"].topics.names()
        del self.devices.current["people"]
        await asyncio.sleep(ALLOWED_SECONDS)
        await self._check_collections(["people"])
        self._published |= await finals_of(self._lab, ["people"])
        self._past += [replace(one, until=time.time()) for one in self._states.pop("people")]
        self.watch.names.remove("people")
        self.fleet.remove("people")
        await self.fleet.restart()
        erased = self._folder / "erased.toml"
        await self.fleet.command("reset", "-c", erased, "--erase", "--yes", "people")
        async with self._lab.admin() as admin:
            if left := await describe(admin, topics):
                self._problems.append(f"topics of people are still there: {sorted(left)}")

    # --- checks ---------------------------------------------------------------------------------

    async def _check_collections(self, names: list[str]) -> None:
        for name in names:
            states, sent = self._states[name], self.devices.sent[name]
            problems, rows, rejected = await check_counts(
                self._lab, states, sent, late_allowed=name in self._late
            )
            self._problems += problems
            self.counts |= rows
            rejected += self._rejected[name]
            if rejected != sent.refused:
                self._problems.append(
                    f"{name}: {sent.refused} messages to refuse, {rejected} refused"
                )

    async def _check_finals(self) -> None:
        """Wait until all finals are there, or even late ones should be."""
        states = [*self._past, *(one for states in self._states.values() for one in states)]
        deadline = time.time() + ALLOWED_SECONDS + _LATE_SECONDS + self._patience_seconds
        while True:
            ended, names = time.time(), self._config.collections
            self._published = await finals_of(self._lab, names) | self._published
            last = ended > deadline
            problems, self.finals = check_finals(
                *(states, self.devices.sent, self._published, self.fleet.halts),
                ended=ended if last else float("inf"),
                patience_seconds=self._patience_seconds,
            )
            if last or not problems:
                break
            await asyncio.sleep(2)
        self._problems += problems

    def _check_reasons(self) -> None:
        """Compare what workers have said with what is known, and look for what nobody said."""
        facts = Facts(self.devices.reported, self.fleet.moves, self._held, self._added)
        patience: Any = {"patience_seconds": self._patience_seconds}
        self._problems += check_told(self.watch.told, facts, **patience)
        silent = [*self.fleet.halts, *self.fleet.stops]
        problems, self.delayed = check_delays(self._published, self.watch.told, silent, **patience)
        self._problems += problems
        expected = {
            "trips": frozenset[str](),
            "people": {"minimum, reports", "minimum, later", "few reports"},
            "places": {"minimum_block, closing", "minimum, later", "few reports"},
        }
        for (name, why), n in self.watch.withheld.items():
            if why not in expected[name]:
                self._problems.append(f"{n} documents of {name} said they lack reports: {why}")
        if not self.watch.withheld["places", "minimum_block, closing"]:
            self._problems.append("no document of places said that minimum_block hides it")

    async def _send(self) -> None:
        self._producer = await self._stack.enter_async_context(self._lab.producer())
        self.devices.start(self._producer)


def table(day: Day, seconds: float) -> str:
    """Return what happened as text."""
    lines = [f"{'state':28} {'sent':>8} {'counted':>8} {'late':>6}"]
    lines += [f"{name:28} {s:8} {n:8} {late:6}" for name, (s, n, late) in day.counts.items()]
    heading = f"{'longest after the end':>24} {'with halts':>12}"
    lines += ["", f"{'state':28} {'finals':>8} {heading}"]
    lines += [
        f"{name:28} {n:8} {worst:22.1f} s {longest:10.1f} s"
        for name, (n, worst, longest) in day.finals.items()
    ]
    withheld = day.watch.withheld
    refused = sum(sent.refused for sent in day.devices.sent.values())
    answers = ", ".join(f"{n} x {status}" for status, n in sorted(day.watch.answers.items()))
    lines += [
        "",
        f"{refused} refused messages, {day.fleet.restarts} restarts, {day.fleet.kills} kills",
        f"{day.delayed} finals after their idle time, {len(day.watch.told)} reasons",
        *(f"{n} documents of {name}: {why}" for (name, why), n in sorted(withheld.items())),
        f"in {seconds:.0f} s",
        f"answers: {answers}",
    ]
    return "\n".join(lines)
