"""One collection in one worker: its owned partitions, from messages to winning heads.

All decisions are made in `agents/state`, which does no I/O. This module loads partitions,
advances time, and sends flushes to the broker and reads them back. Faust says which partitions are
owned; `ldpstream.agents.engine.intake` ensures that no message is left out.
"""

import asyncio
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from aiokafka.errors import KafkaError

from ldpstream.agents.broker.refusals import Complaints
from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.engine.flushing import InFlightFlushes, Services
from ldpstream.agents.engine.intake import BatchQueue, Intake, OwnedPartition
from ldpstream.agents.engine.isolation import isolate_errors
from ldpstream.agents.engine.loading import ConflictingWorkers, Loader, waits_for
from ldpstream.agents.engine.source import Batch, SourceReader
from ldpstream.agents.engine.waits import Wait, WindowWaits
from ldpstream.agents.state.close_orders import Control, merge_oldest, outstanding
from ldpstream.agents.state.closing import SeenHeads
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.flushes import Outcome, Settled
from ldpstream.agents.state.partition import Partition
from ldpstream.agents.state.replica import Replica
from ldpstream.agents.state.windows import NEVER

REVOKE_SECONDS: Final = 3.0
_SLOW_SECONDS: Final = 30.0
"""How long a flush may take while the broker answers."""

log = logging.getLogger(__name__)


class Engine:
    """A collection as one worker runs it.

    - `accepted`: the engines of the specs that it accepts, over the same topics. `others`: all
      other states of the collection.
    - `title`: its name in messages: the collection's name, plus the spec for an accepted one.
    - `intake` counts what is read; `end_offsets`, by partition, are the source's last seen.
    - `news` is set whenever there may be a new winning head.
    - `settings` are wrong settings of its topics, `complaints` topics that cannot be written.
    """

    def __init__(
        self,
        config: CollectionConfig,
        context: Context,
        reader: SourceReader,
        channel: BatchQueue,
        services: Services,
    ) -> None:
        self.config = config
        self.context = context
        self._accepted = config.spec.fingerprint.hex() if context.accepted else None
        self.title = f"{config.name} ({self._accepted})" if self._accepted else config.name
        self.accepted: tuple[Engine, ...] = ()
        self.replicas = [Replica(context, partition) for partition in range(config.partitions)]
        self.owned: frozenset[int] = frozenset()
        self._problem = ""
        self._notes: list[str] = []
        self.settings: tuple[str, ...] = ()
        self._slow = ""
        self._services = services
        self._loaded: dict[int, OwnedPartition] = {}
        self.news = asyncio.Event()
        self.intake = Intake(config, reader, channel, self, services.clock)
        self.end_offsets: Mapping[int, int] = self.intake.end_offsets
        self._loader = Loader(self.title, config, context, self.replicas, services.identity)
        self.complaints = Complaints(f"collection {self.title}")
        self._flights = InFlightFlushes(self.title, config, services, self, self.complaints)
        self._controls: list[Control] = []
        self._conflicting_workers = ConflictingWorkers(config)
        self._waits = WindowWaits(self.title, context)

    # --- what others read ------------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        """Whether every replica has reached its log's end and there is no problem."""
        return not self._problem and all(replica.head is not None for replica in self.replicas)

    @property
    def settled(self) -> bool:
        """Whether every owned partition has been loaded."""
        return self.ready and self.owned <= self._loaded.keys()

    @property
    def stopped(self) -> bool:
        """Whether it has stopped for good because of an error."""
        return bool(self._problem)

    @property
    def problems(self) -> Sequence[str]:
        """The problems that keep it from working, one sentence each."""
        missing = self.owned - self._loaded.keys()
        waits = [waits_for(e.title, e.replicas, missing) for e in self.accepted if e.stopped]
        waits += [self._loader.problem(missing), self._loader.added]
        services = self._services
        sources = (
            services.clock.problem,
            services.group.problem,
            self._conflicting_workers.problem,
            *waits,
        )
        refused = (*self.settings, *self.complaints.problems, self._slow)
        return tuple(filter(None, (self._problem, *self._notes, *refused, *sources)))

    @property
    def notices(self) -> Sequence[str]:
        """What waits for the restart of other workers; this one is ready."""
        notice = "" if self._problem else self._loader.notice(self.owned - self._loaded.keys())
        return (notice,) if notice else ()

    @property
    def waits(self) -> Sequence[Wait]:
        """The partitions that open windows wait for; where all stand still, `problems` say why."""
        still = self._problem or self._services.clock.problem or self._loader.added
        return () if still else self._waits.waits

    @property
    def partial(self) -> bool:
        """Whether a worker with other windows counts part of the reports."""
        return bool(self._conflicting_workers.problem)

    @property
    def first(self) -> Partition | None:
        """Partition 0's state, if this worker holds it: its owner publishes."""
        publisher = self._loaded.get(0)
        return None if publisher is None else publisher.state

    @property
    def loaded_partitions(self) -> frozenset[int]:
        """The partitions that this worker owns and has loaded."""
        return frozenset(self._loaded)

    # --- events ---------------------------------------------------------------------------------

    def count(self, batch: Batch) -> None:
        """Count the reports of a batch, under the collection's spec or the accepted one it is for.

        Each spec reads the topic by itself, so exactly one of them waits for a batch. None does if
        the batch has come twice, or its partition has been given away.
        """
        any(engine.intake.count(batch) for engine in (self, *self.accepted))

    def accept(self, engines: Iterable["Engine"]) -> None:
        """Share all topics with the engines of accepted specs; call it before the start."""
        self.accepted = tuple(engines)
        states = (self, *self.accepted)
        for engine in states:
            other_states = [other.replicas for other in states if other is not engine]
            engine._loader.other_states = other_states  # noqa: SLF001 (our own kind)

    def assign(self, partitions: Iterable[int]) -> None:
        """Take over partitions; they are loaded at the next tick, from their replicas.

        Those that were added to the topic have none before a restart: until then the others are
        counted, and no window closes (`Loader.known_partitions`).
        """
        assigned = frozenset(partitions)
        self._loader.assigned = max(self._loader.assigned, max(assigned, default=-1) + 1)
        revoked = self.owned - assigned
        self.owned = frozenset(p for p in assigned if p < len(self.replicas))
        # The owner of partition 0 publishes.
        published = [] if 0 in assigned else [(self.config.topics.estimates, f) for f in (0, 1)]
        for key in (*revoked, *published):
            self.complaints.clear(key)

    async def revoke(self) -> None:
        """Flush as much as possible in a few seconds, then forget all partitions."""
        await self.unload()
        self.owned = frozenset()

    async def unload(self) -> None:
        """Flush as much as possible in a few seconds, then unload all partitions."""
        await self._flights.drain(self._loaded.values(), REVOKE_SECONDS)
        for partition in list(self._loaded):
            self._drop(partition)

    def fail(self, problem: str) -> None:
        """Stop for good: only an operator can fix this problem.

        The first problem is the one to fix. A topic that was created again, say, is noticed by what
        is read of it, by its id, and by a flush in flight.
        """
        if self._problem:
            log.debug("collection %s has stopped; then: %s", self.title, problem)
        else:
            self._problem = problem
            log.error("collection %s stops: %s", self.title, problem)
        for partition in list(self._loaded):
            self._drop(partition)

    def report_problem(self, problem: str) -> None:
        """Report a problem that does not stop the collection, in the log and to operators."""
        if problem not in self._notes:
            self._notes.append(problem)
            log.error("collection %s: %s", self.title, problem)

    def report_settings(self, problems: Sequence[str]) -> None:
        """Report what is wrong now in the settings of the collection's topics."""
        for problem in problems:
            if problem not in self.settings:
                log.error("collection %s: %s", self.title, problem)
        self.settings = tuple(problems)

    def apply_control(self, control: Control) -> None:
        """Accept an operator's order to close panes; `merge_oldest` limits how many wait."""
        heads = [replica.head for replica in self.replicas]
        before = outstanding(self.context.window, self._controls, heads)
        ends = {p: end for p, end in control.ends.items() if p < len(self.replicas)}
        self._controls = merge_oldest([*before, replace(control, ends=ends)])

    def replica_read(self, number: int) -> None:
        """Wake those that wait for a replica's evaluation: it may show which flush won."""
        self.news.set()
        partition = self._loaded.get(number)
        if partition is not None:
            partition.read.set()

    # --- periodic work --------------------------------------------------------------------------

    def tick(self) -> bool:
        """Do everything that is due, without waiting; return whether windows became final.

        In a replay thousands do, some at a time.
        """
        self._conflicting_workers.update(self.replicas, time.monotonic())
        if self._problem or self._services.clock.problem:
            return False
        before = self._decided
        self._load()
        self._check_flushes()
        # No record is read during a tick, so the heads are the same for all partitions.
        known_partitions = self._loader.known_partitions()
        heads = SeenHeads.of(self.replicas[:known_partitions])
        for partition in list(self._loaded.values()):
            if partition.flight is None and partition.state.settle() is Settled.LOST:
                self.on_ownership_loss(partition)
                continue
            self.intake.resume_reading(partition)
            partition.state.clock(
                replicas=self.replicas,
                controls=self._controls,
                known_partitions=known_partitions,
                now_ms=self._services.clock.steady_ms(),
                heads_seen=heads,
            )
            self._flights.start(partition)
        self._waits.update(
            self.replicas,
            {number: partition.state for number, partition in self._loaded.items()},
            self.owned,
            clock=self._services.clock,
        )
        return self._decided > before

    def _check_flushes(self) -> None:
        """Report flushes that the client retries without end, which it never calls an error."""
        broker, before = self._services.broker, time.monotonic() - _SLOW_SECONDS
        slow = [
            p
            for p, partition in self._loaded.items()
            if partition.flight and partition.flushed < before
        ]
        if broker.silent or broker.answers_since > before:
            slow = []
        warning = ""
        if slow:
            warning = (
                f"{len(slow)} of its partitions, {min(slow)} the first, wait for the broker to "
                "store what they have counted: are as many replicas in sync as min.insync.replicas "
                f"of {self.config.topics.changelog} asks for?"
            )
            if not self._slow:
                log.warning("collection %s: %s", self.title, warning)
        self._slow = warning

    @property
    def _decided(self) -> int:
        return NEVER if self.first is None else self.first.work.final

    def _load(self) -> None:
        for number in self._loader.loadable_partitions(self.owned - self._loaded.keys()):
            state = self._loader.load(number)
            if state is not None:
                partition = self._loaded[number] = OwnedPartition(state)
                self.intake.begin(partition)

    async def check_topics(self) -> None:
        """Check that source and changelog are still the same topics."""
        with isolate_errors(self.fail):
            try:
                await self._flights.check_source()
            except KafkaError as error:
                log.debug("no topic ids: %r", error)

    # --- what happens to held partitions --------------------------------------------------------

    def schedule_flush(self, partition: OwnedPartition) -> None:
        """Schedule a flush of what has been ingested for when it is due."""
        self._flights.schedule(partition)

    def on_flush_committed(self, outcome: Outcome, seconds: float) -> None:
        """Record a flush that won, what it added, and how many seconds it took."""
        self.news.set()
        name, metrics = self.config.name, self._services.metrics
        metrics.count_commit(name, outcome, accepted=self._accepted)
        metrics.flush_seconds.labels(name).observe(seconds)

    def on_ownership_loss(self, partition: OwnedPartition, *, refused: bool = False) -> None:
        """Drop a partition that another owner has written to, or whose flush was refused."""
        if refused:
            self._loader.pause(partition.number)
        if self._loaded.get(partition.number) is partition:
            log.debug("collection %s: partition %d is loaded again", self.title, partition.number)
            self._drop(partition.number)

    def _drop(self, number: int) -> None:
        partition = self._loaded.pop(number)
        partition.leaving = True
        if partition.flight is not None and partition.flight is not asyncio.current_task():
            partition.flight.cancel()
        if partition.timer is not None:
            partition.timer.cancel()
        self.intake.end(partition)
