"""The simulated world with packed messages as input: packers crash, overlap, wake up late, lie.

Several packers read every partition from wherever they are (after a crash from an offset that
somebody committed, or from the beginning), and their messages land in any order, twice, or never.
In between land malformed messages, and packed ones of another topic or partition. The frames topic
is cut at its beginning, emptied, or created again. Workers read it from the offset in their head,
and the source where something is missing, or where chance says that packers are silent.
"""

from dataclasses import dataclass, field

import numpy as np

from ldpstream.agents.reading.packed_intake import Taken, take
from ldpstream.agents.state.packed import Packed, PackedError, decode_packed, encode_packed
from tests.packing import make_records
from tests.stream.simulation.brokers import MOST
from tests.stream.simulation.patched import with_worker
from tests.stream.simulation.worker import Watched, Worker
from tests.stream.simulation.world import World

ID = bytes(range(1, 17))
OTHER = bytes(16)


@dataclass
class Frames:
    """The frames topic of one partition, messages in flight to it, and what packers committed."""

    log: list[bytes] = field(default_factory=list)
    start: int = 0
    flying: list[bytes] = field(default_factory=list)
    committed: int = 0
    packers: list[int] = field(default_factory=lambda: [0, 0, 0])


class PackedWorker(Worker):
    """A worker that reads packed messages, and the source where they have a gap."""

    world: "PackedWorld"

    def ingest(self, p: int) -> None:
        held, rng = self.held.get(p), self.world.rng
        if held is None:
            return
        if rng.random() < self.world.silence:
            super().ingest(p)
            return
        part, frames = held.part, self.world.frames[p]
        if not frames.start <= part.work.frames <= len(frames.log):
            part.frames_at(frames.start)
        for _ in range(rng.choice([1, 1, 3])):
            if part.work.frames == len(frames.log):
                if rng.random() < 0.5:
                    super().ingest(p)
                return
            if not self.packed(p, part, frames.log[part.work.frames]):
                super().ingest(p)
                return
            part.frames_at(part.work.frames + 1)

    def packed(self, p: int, part: Watched, value: bytes) -> bool:
        """Take a packed message; return False where the source has to be read first."""
        try:
            packed = decode_packed(value, partition=p, topic_id=ID)
        except PackedError as error:
            self.world.seen.add(error.reason)
            return True
        taken = self.take(part, packed)
        self.world.seen.add(taken.value)
        return taken in {Taken.TAKEN, Taken.REPEAT}

    def take(self, part: Watched, packed: Packed) -> Taken:
        before = len(part.outcomes)
        taken = take(part, packed, now_ms=self.now_ms)
        self.world.times.check(part.partition, part, part.outcomes[before:])
        return taken


class PackedWorld(World):
    """A world whose workers read packed messages."""

    worker_class: type[Worker] = PackedWorker

    def __init__(self, seed: int, *, kafka: bool = True) -> None:
        super().__init__(seed, kafka=kafka)
        # Neither the wire format nor brokers have arrivals before 1970.
        self.times.checked = self.wall_ms >= 0
        self.frames = [Frames() for _ in range(MOST)]
        self.silence = self.rng.choice([0.0, 0.1, 0.5])
        self.seen: set[str] = set()
        self.weights |= {"pack": 25, "land_packed": 20, "lie": 0.5, "cut_frames": 0.3}

    def do_pack(self) -> None:
        rng, p = self.rng, self.any_partition()
        frames, source = self.frames[p], self.source[p]
        who = rng.randrange(len(frames.packers))
        if rng.random() < 0.05:
            # It crashed; the next one begins at the committed offset, or at the beginning.
            frames.packers[who] = rng.choice([frames.committed, frames.committed, 0])
        at = max(frames.packers[who], self.start[p])
        stop = min(len(source), at + rng.choice([1, 2, 5, 20]))
        if at < stop:
            frames.flying.append(self.pack(p, at, stop, partition=p, topic_id=ID))
            frames.packers[who] = stop
            # Committing what has not been acknowledged is no worse than losing it afterwards.
            frames.committed = rng.choice([frames.committed, stop])
            self.say("pack", p, at, stop)

    def pack(self, p: int, at: int, stop: int, *, partition: int, topic_id: bytes) -> bytes:
        dates = self.times.dates(p, range(at, stop))
        known = dates.arrivals(now_ms=self.wall_ms).clock_ms
        records = make_records(
            [(o, self.source[p][o].value) for o in range(at, stop)],
            arrived=None if self.wall_ms < 0 else np.broadcast_to(known, stop - at).tolist(),
            appended=dates.appended,
        )
        packed = Packed(at, stop, len(self.source[p]), records)
        return encode_packed(packed, partition=partition, topic_id=topic_id)

    def do_land_packed(self) -> None:
        rng, p = self.rng, self.any_partition()
        frames = self.frames[p]
        if frames.flying:
            i = rng.choice([0, 0, rng.randrange(len(frames.flying))])
            # One in ten stays in flight and lands again; one in twenty is lost.
            value = frames.flying[i] if rng.random() < 0.1 else frames.flying.pop(i)
            if rng.random() < 0.95:
                frames.log.append(value)
                self.say("land packed", p, len(frames.log) - 1)

    def do_lie(self) -> None:
        rng, p = self.rng, self.any_partition()
        if self.source[p]:
            n = len(self.source[p])
            true = self.pack(p, 0, n, partition=p, topic_id=ID)
            lies = [
                b"",
                true[: rng.randrange(len(true))],
                self.pack(p, 0, n, partition=p, topic_id=OTHER),
                self.pack(p, 0, n, partition=p + 1, topic_id=ID),
                true[:24] + (n + 5).to_bytes(8, "little") + true[32:],
            ]
            self.frames[p].log.append(rng.choice(lies))

    def do_cut_frames(self) -> None:
        rng, p = self.rng, self.any_partition()
        frames = self.frames[p]
        if rng.random() < 0.5:
            frames.start = rng.randint(frames.start, len(frames.log))
        else:
            frames.log, frames.start = [], 0
        self.say("frames cut", p, frames.start, len(frames.log))

    def quiesce(self) -> None:
        # Workers see no more of packers, and read the rest from the source.
        self.silence = 0.5
        super().quiesce()


class HolesIgnored(PackedWorker):
    """A gap before a packed message is taken for counted."""

    def take(self, part: Watched, packed: Packed) -> Taken:
        if packed.after > part.next:
            part.pass_over(packed.after)
        return super().take(part, packed)


class RepeatsCounted(PackedWorker):
    """A message is taken from its beginning, whatever has been counted."""

    def take(self, part: Watched, packed: Packed) -> Taken:
        if packed.after < part.next < packed.next:
            shift = part.next - packed.after
            records = [(offset + shift, value) for offset, value in packed.records]
            part.ingest(records, now_ms=self.now_ms)
            return Taken.TAKEN
        return super().take(part, packed)


PACKED_MUTANTS = {
    "packed: holes ignored": with_worker(HolesIgnored, PackedWorld),
    "packed: repeats counted": with_worker(RepeatsCounted, PackedWorld),
}
