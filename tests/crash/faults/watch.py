"""What a run sees while it goes on: how far the heads are, and what the workers' metrics say."""

import asyncio
from collections import Counter
from contextlib import suppress

import aiohttp
from aiokafka import TopicPartition
from prometheus_client.parser import text_string_to_metric_families

from ldpstream.agents.document.build import final_content
from ldpstream.agents.engine.changelog import ChangelogReader
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.records import Head
from ldpstream.agents.state.replica import Replica
from tests.crash.faults.fleet import Fleet, Place
from tests.crash.faults.waiting import holds
from tests.lab import Lab

SCRAPE_SECONDS = 2.0
Ends = dict[tuple[str, int], int]
Counted = Counter[tuple[str, str]]


class Heads:
    """Follows the changelogs of all collections without a group, as any reader may."""

    def __init__(self, lab: Lab) -> None:
        self.broken: list[str] = []
        self._lab = lab
        self._replicas: dict[str, list[Replica]] = {}
        for name, config in lab.config.collections.items():
            context = Context(
                spec=config.spec, window=config.window, make_final=final_content(config)
            )
            self._replicas[name] = [Replica(context, p) for p in range(config.partitions)]

    async def run(self) -> None:
        """Read until cancelled."""
        replicas = {
            TopicPartition(config.topics.changelog, replica.partition): replica
            for name, config in self._lab.config.collections.items()
            for replica in self._replicas[name]
        }
        async with self._lab.reader() as reader:
            await ChangelogReader(
                reader,
                replicas,
                on_read=lambda _: None,
                on_broken=lambda partition, why: self.broken.append(f"{partition}: {why}"),
            ).run()

    def heads(self, name: str) -> list[Head]:
        """Return the heads of a collection."""
        return [replica.head or Head() for replica in self._replicas[name]]

    def reached(self, ends: Ends) -> bool:
        """Return whether everything before these offsets has been decided."""
        return not self.behind(ends)

    def behind(self, ends: Ends) -> list[str]:
        """Name the partitions in which something before these offsets has not been decided."""
        return [
            f"{name}[{p}] is at {at}, not at {end}"
            for (name, p), end in ends.items()
            if (at := self.heads(name)[p].next) < end
        ]

    async def reach(self, ends: Ends, *, seconds: float) -> bool:
        """Wait until everything before these offsets has been decided; False if it takes longer."""
        return await holds(lambda: self.reached(ends), seconds=seconds)

    def totals(self) -> Counted:
        """Return what the heads say has been decided, by collection and result."""
        found: Counted = Counter()
        for name in self._replicas:
            for head in self.heads(name):
                found[name, "counted"] += head.n
                found[name, "late"] += head.late
                found[name, "rejected"] += sum(head.rejected.values())
                found[name, "lost_offsets"] += head.lost
        return found


class Scrapes:
    """The counters of every worker that ever was ready, as last seen before it ended."""

    def __init__(self, fleet: Fleet) -> None:
        self.began = 0
        """How many workers became ready."""
        self.cut_off = 0
        """How many of them were killed before they could be asked."""
        self._fleet = fleet
        self._seen: dict[tuple[int, float], Counted] = {}
        self._starting: set[asyncio.Task[None]] = set()
        fleet.on_ready = self._began

    @property
    def processes(self) -> int:
        """How many worker processes the metrics show, by the time at which they started."""
        return len(self._seen)

    def sums(self) -> Counted:
        """Return the sum of all counters over all workers, each as last seen."""
        return sum(self._seen.values(), Counter())

    async def run(self) -> None:
        """Scrape every ready worker, over and over, until cancelled."""
        while True:
            await self.once()
            await asyncio.sleep(SCRAPE_SECONDS)

    async def once(self) -> None:
        """Scrape every ready worker."""
        await asyncio.gather(*(self._scrape(place) for place in self._fleet.places if place.ready))

    def _began(self, place: Place) -> None:
        self.began += 1
        task = asyncio.create_task(self._first(place))
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    async def _first(self, place: Place) -> None:
        worker = place.worker
        assert worker is not None
        if not await self._scrape(place) and worker.process.poll() is not None:
            self.cut_off += 1

    async def _scrape(self, place: Place) -> bool:
        worker = place.worker
        assert worker is not None
        with suppress(aiohttp.ClientError, TimeoutError):
            timeout = aiohttp.ClientTimeout(total=5)
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.get(worker.url + "/metrics") as answer,
            ):
                self._take(place.number, await answer.text())
                return True
        return False

    def _take(self, place: int, text: str) -> None:
        found: Counted = Counter()
        started = 0.0
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                labels = sample.labels
                if sample.name == "process_start_time_seconds":
                    started = sample.value
                elif sample.name == "ldpstream_reports_total":
                    found[labels["collection"], labels["result"]] += int(sample.value)
                elif sample.name == "ldpstream_lost_offsets_total":
                    found[labels["collection"], "lost_offsets"] += int(sample.value)
        self._seen[place, started] = found
