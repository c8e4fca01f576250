"""The simulated world: brokers, workers, an analyst, and the ledger that checks them.

A schedule of random steps drives them. The group moves partitions at any moment; a worker that
loses one flushes first, crashes, or is paused, and wakes believing that it is the owner until its
next call to the group. Workers' clocks differ, and partitions are added. In two runs of five,
messages that do not count (refused, or of an accepted spec) come more often than others, and go on
once faults stop. For what brokers may do see `brokers`.
"""

import random

from ldpstream.agents.state.close_orders import Control
from ldpstream.agents.state.closing import Publication
from ldpstream.agents.state.encoding import state_prefix
from ldpstream.agents.state.records import Head
from ldpstream.agents.state.replica import Replica
from ldpstream.agents.state.windows import NEVER
from tests.stream.simulation.brokers import MOST, Brokers
from tests.stream.simulation.checks import Checks
from tests.stream.simulation.closed import check_answers
from tests.stream.simulation.setting import (
    Message,
    Setting,
    make_message,
    make_setting,
    make_uncounted,
    small_spec,
)
from tests.stream.simulation.times import DATED, Times
from tests.stream.simulation.worker import Reader, Worker

WORK = (
    "replica",
    "poll",
    "sweep",
    "clock",
    "flush",
    "ingest flush",
    "ingest clock flush",
    "flush replica settle",
    "settle publish mark",
    "settle publish",
    "mark",
    "poll replica load ingest flush",
    "poll replica settle load ingest clock flush",
    "replica settle load ingest flush flush",
    "replica settle load clock flush replica",
)
"""What a worker may do in one step of the schedule."""
ROUND = (
    "replica",
    "settle",
    "load",
    "ingest",
    "clock",
    "publish",
    "mark",
    "flush",
    "flush",
    "replica",
)
WEIGHTS = {
    "work": 60,
    "land": 16,
    "produce": 6,
    "tick": 3,
    "compact": 6,
    "analyse": 8,
    "close": 0.3,
    "fault": 8,
    "grow": 0.3,
    "retain": 0.2,
}
"""How often each kind of step happens; every run varies these weights."""


class World(Brokers):
    """One run. Steps are numbers, so that a schedule can be shortened and replayed."""

    worker_class: type[Worker] = Worker
    replica_class: type[Replica] = Replica
    checks_class: type[Checks] = Checks
    shadow = True

    def __init__(self, seed: int, *, kafka: bool = True) -> None:
        super().__init__(kafka=kafka)
        self.rng = rng = random.Random(seed)
        self.setting = self.choose_setting(rng)
        self.context = self.setting.context
        self.prefix = state_prefix(self.context)
        self.partitions = self.choose_partitions(rng)
        self.now_ms = self.setting.start_ms + 10
        self.checks = self.checks_class(self)
        self.times = Times(self, DATED[seed // 4 % len(DATED)])
        self.fetch_errors = 0.1
        self.trickle = seed % 10 in (0, 1, 4, 9)
        # Every run has its own mix, in which rare steps may be frequent.
        self.weights = {
            name: weight * rng.choice([0.2, 1, 1, 3 if weight > 1 else 12])
            for name, weight in WEIGHTS.items()
        }
        self.controls: list[Control] = []
        self.workers = {
            name: self.worker_class(self, name) for name in "ABC"[: rng.choice([1, 2, 2, 3])]
        }
        self.analyst = [self.reader_class(self, p) for p in range(MOST)]
        self.rebalance()

    def choose_setting(self, rng: random.Random) -> Setting:
        return make_setting(rng)

    def choose_partitions(self, rng: random.Random) -> int:
        return rng.choice([1, 1, 1, 2, 3])

    @property
    def wall_ms(self) -> int:
        return self.now_ms + self.setting.ahead_ms

    def lagged_ms(self, p: int) -> int:
        """Return the wall-clock time until which a leader of a partition lagged behind its log."""
        return NEVER

    def publish(self, publication: Publication) -> None:
        self.say("publish", publication)
        self.checks.publish(publication)

    def check_view(self, reader: Reader, before: Head | None) -> None:
        self.checks.view(reader, before)

    # The scheduler.

    def step(self, number: int) -> None:
        rng = self.rng = random.Random(number)
        kind = rng.choices(list(self.weights), list(self.weights.values()))[0]
        if self.trickle and kind in ("produce", "tick"):
            other = random.Random(~number)
            self.uncounted(other.randrange(self.partitions), other)
        getattr(self, "do_" + kind)()
        self.times.note()

    def any_partition(self) -> int:
        return self.rng.randrange(self.partitions)

    def do_work(self) -> None:
        rng, p = self.rng, self.any_partition()
        awake = [worker for worker in self.workers.values() if not worker.paused]
        if awake:
            worker, acts = rng.choice(awake), rng.choice(WORK)
            self.say(worker.name, acts, p)
            for act in acts.split():
                getattr(worker, act)(p)

    def do_land(self) -> None:
        rng = self.rng
        for _ in range(rng.choice([1, 1, 4, 12])):
            if not self.flying:
                break
            i, fault = rng.choice([0, rng.randrange(len(self.flying))]), rng.random()
            if fault < 0.01 and self.flying[i].state != "acked":
                self.flying.pop(i).state = "failed"
            elif fault < 0.02:
                # The worker sees a failure, but the send may still land.
                self.flying[i].state = "failed"
            else:
                self.land(i, duplicate=not self.kafka and fault < 0.2)

    def do_produce(self) -> None:
        rng, p = self.rng, self.any_partition()
        self.source[p].append(make_message(rng, self.now_ms))
        self.say("produce", p, self.source[p][-1])

    def uncounted(self, p: int, rng: random.Random, *, accepted: bool | None = None) -> None:
        """Produce a message that does not count."""
        self.source[p].append(self.make_uncounted(rng, accepted=accepted))
        self.say("produce", p, self.source[p][-1])
        self.times.note()

    def make_uncounted(self, rng: random.Random, *, accepted: bool | None) -> Message:
        made = make_uncounted(rng, self.now_ms, wall_ms=self.wall_ms, accepted=accepted)
        # To a collection with another spec all of them are foreign.
        return made if self.context.spec is small_spec() else Message(made.value, (None,))

    def do_tick(self) -> None:
        self.now_ms += 1

    def do_compact(self) -> None:
        rng, p = self.rng, self.any_partition()
        if self.kafka:
            upto = rng.choice([self.end[p], rng.randint(0, self.end[p])])
            self.compact(p, upto, drop_deletions=rng.random() < 0.5)

    def do_analyse(self) -> None:
        rng, p = self.rng, self.any_partition()
        self.analyst[p].read(rng.choice([1, 1, 2, 9]))
        for readers in (self.analyst, *(worker.readers for worker in self.workers.values())):
            check_answers(self.checks, [one.replica for one in readers[: self.partitions]])

    def do_close(self) -> None:
        rng = self.rng
        self.close(self.now_ms - rng.randint(0, 4))

    def close(self, until_ms: int) -> None:
        ends = {q: len(self.source[q]) for q in range(self.partitions)}
        self.controls.append(Control(until_ms, ends))
        self.say("close", until_ms, ends)

    def do_grow(self) -> None:
        if self.partitions < MOST:
            self.partitions += 1
            self.rebalance()
            self.say("grow", self.partitions)

    def do_retain(self) -> None:
        rng, p = self.rng, self.any_partition()
        self.start[p] = rng.randint(self.start[p], len(self.source[p]))
        self.say("retain", p, self.start[p])

    def do_fault(self) -> None:
        rng = self.rng
        name = rng.choice(sorted(self.workers))
        fault = rng.choice(["crash", "pause", "wake", "wake", "rebalance", "clean"])
        self.say(fault, name)
        if fault == "crash":
            self.workers[name] = self.worker_class(self, name)
        elif fault in ("pause", "wake"):
            self.workers[name].paused = fault == "pause"
        elif fault == "clean" and not self.workers[name].paused:
            self.round([self.workers[name]])
        if fault != "wake":
            self.rebalance()

    def round(self, workers: list[Worker]) -> None:
        for act in (*ROUND, "settle", "sweep"):
            for worker in workers:
                for p in range(self.partitions):
                    if act == "replica":
                        worker.readers[p].read(10**9)
                    else:
                        getattr(worker, act)(p)
            while self.flying:
                self.land()

    def quiesce(self) -> None:
        """Stop faults, run rounds of everything until all is final and a few more, and check."""
        # A round takes 1 ms. A partition that nobody has read yet starts at the run's first
        # message, or 40 ms before it where senders lie about dates.
        elapsed_ms = self.now_ms - self.setting.start_ms
        least = rounds = 120 + elapsed_ms + (1 + 2 * self.trickle) * sum(map(len, self.source))
        self.say("faults stop; rounds of everything until all is final")
        self.fetch_errors, said = 0, list(self.trace)
        if self.context.window.idle_ms is None:
            self.close(self.now_ms + 50)
        for worker in self.workers.values():
            worker.paused = False
            worker.poll(0)
        while rounds and (rounds > least - 10 or not self.checks.done()):
            rounds, self.now_ms = rounds - 1, self.now_ms + 1
            # Refused messages come more often than the idle time is long.
            if self.trickle and rounds % 4 and not self.checks.all_final():
                for p in range(self.partitions):
                    other = random.Random(rounds * self.partitions + p)
                    self.uncounted(p, other, accepted=rounds % 4 == 2)
            self.round(list(self.workers.values()))
        self.trace = said
        self.checks.finish()
