"""The brokers of the simulated world: sources, changelogs, messages in flight, and the group.

Source partitions and their changelogs are append-only logs. A send is acknowledged, fails (and may
still land much later), or outlives its crashed or paused worker; sends land in any order.
Compaction may run on any prefix at any moment: it keeps the last record of a key, and later drops
deletions. The source's retention may delete unread messages. With `kafka=False` it is the
development broker: no compaction, but duplicates. (No rule survives the two together: on a broker
that compacts, the producer must be idempotent.)
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from ldpstream.agents.state.encoding import decode_head
from ldpstream.agents.state.flushes import Copy
from ldpstream.agents.state.records import HEAD, Head
from tests.stream.simulation.checks import Checks
from tests.stream.simulation.evaluation import read_key
from tests.stream.simulation.setting import Message
from tests.stream.simulation.worker import Outcome, Reader, Worker

MOST = 3
"""The most partitions that a source may grow to."""


@dataclass
class Send:
    """A message in flight to a broker: a changelog record, or a copy.

    A head carries, for the checks only, the outcomes decided since the one before.
    """

    p: int
    key: bytes
    value: bytes | None
    copy: Copy | None = None
    outcomes: Sequence[Outcome] = ()
    state: str = "flying"


class Brokers:
    """Logs by partition, and which of their heads won, for the checks."""

    reader_class: type[Reader] = Reader
    rng: random.Random
    prefix: bytes
    checks: Checks
    workers: dict[str, Worker]
    partitions: int

    def __init__(self, *, kafka: bool) -> None:
        self.kafka, self.trace = kafka, []
        self.source: list[list[Message]] = [[] for _ in range(MOST)]
        self.start = [0] * MOST
        self.log: list[list[tuple[int, bytes, bytes | None]]] = [[] for _ in range(MOST)]
        self.full: list[list[tuple[int, bytes, bytes | None]]] = [[] for _ in range(MOST)]
        self.end = [0] * MOST
        self.flying: list[Send] = []
        self.official = [Head() for _ in range(MOST)]
        self.won: list[dict[int, int]] = [{} for _ in range(MOST)]
        self.committed = [0] * MOST
        self.generation, self.assignment = 0, {}

    def say(self, *what: object) -> None:
        self.trace.append(what)

    def fetch(self, p: int, position: int, limit: int):
        records = self.log[p]
        low, high = 0, len(records)
        while low < high:
            middle = (low + high) // 2
            if records[middle][0] < position:
                low = middle + 1
            else:
                high = middle
        return records[low : low + limit], self.end[p]

    def send(self, p: int, key: bytes, value: bytes | None) -> Send:
        self.flying.append(Send(p, key, value))
        return self.flying[-1]

    def send_copy(self, p: int, copy: Copy) -> Send:
        self.flying.append(Send(p, b"", None, copy))
        return self.flying[-1]

    def land(self, i: int = 0, *, duplicate: bool = False) -> None:
        send = self.flying[i] if duplicate else self.flying.pop(i)
        if not duplicate and send.state == "flying":
            send.state = "acked"
        if send.copy is not None:
            self.checks.land_copy(send.p, send.copy)
            return
        record = (self.end[send.p], send.key, send.value)
        self.log[send.p].append(record)
        self.full[send.p].append(record)
        self.end[send.p] += 1
        self.say("land", send.p, send.key, send.value)
        key = read_key(self.prefix, send.key)
        if key.name == HEAD and send.value and key.seq == self.official[send.p].seq + 1:
            before, after = self.official[send.p], decode_head(key, send.value)
            self.official[send.p] = after
            self.won[send.p][after.seq] = after.epoch
            self.checks.win(send.p, before, after, send.outcomes)

    def compact(self, p: int, upto: int, *, drop_deletions: bool) -> None:
        last = {key: offset for offset, key, _ in self.log[p] if offset < upto}
        self.log[p][:] = [
            (offset, key, value)
            for offset, key, value in self.log[p]
            if offset >= upto or (last[key] == offset and not (drop_deletions and value is None))
        ]
        self.say("compact", p, upto)
        self.fresh_reader(p)

    def fresh_reader(self, p: int, *, garbage: bool = False) -> Reader:
        """Return a new reader; with `garbage` it reads the log as if nothing were deleted."""
        reader = self.reader_class(self, p)
        if garbage:
            compacted = self.log[p]
            self.log[p] = [record for record in self.full[p] if record[2] is not None]
            reader.read(10**9)
            self.log[p] = compacted
        else:
            reader.read(10**9)
        return reader

    def rebalance(self) -> None:
        self.generation += 1
        names = sorted(self.workers)
        self.assignment = {p: self.rng.choice(names) for p in range(self.partitions)}

    def commit(self, p: int, offset: int, generation: int) -> bool:
        self.checks.commit(p, offset)
        if generation == self.generation:
            self.committed[p] = offset
        return generation == self.generation

    def lost_outcomes(self, p: int, first: int, end: int) -> list[Outcome]:
        """Return the outcomes of reports that retention deleted unread."""
        return [
            (offset, index, "lost")
            for offset in range(first, end)
            for index in range(len(self.source[p][offset].reports))
        ]
