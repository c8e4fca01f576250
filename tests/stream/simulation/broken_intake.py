"""Every rule of the intake and of idleness taken away in turn.

That a probe counts from before it was asked for, not from when it was seen, has no mutant: one
fetch of a partition is under way at a time, so the last of a series was asked for no earlier than
the one before it was answered, which is a gap before it was seen itself at most. That a series has
no gaps is tested in `test_probes`: a mutant without it was not noticed within 1,500 runs.
"""

from dataclasses import replace
from functools import partial

from ldpstream.agents.partition.arrival import Arrivals
from ldpstream.agents.partition.clock import UnbrokenProbes
from ldpstream.agents.reading.intake import Intake, OwnedPartition
from ldpstream.agents.reading.source import Batch, Outside, Session
from tests.stream.simulation.intake import GAP_MS, Harsh, IntakeWorker, IntakeWorld, Part
from tests.stream.simulation.world import World


class ReadIsSent(Intake):
    """What was read goes through the channel with its call: it may be lost, or come twice.

    The product keeps it in its session, so that a gap or a repeat comes of errors alone; what
    becomes of them is held by taking the rules away under this channel.
    """

    def _call(self, held: OwnedPartition, session: Session) -> None:
        self.channel.offer(partial(self._receive, held, session, session.take()))

    def _receive(self, held: OwnedPartition, session: Session, item: Batch | Outside) -> None:
        session.called = False
        if session is held.session:
            self._take(held, session, item)
            session.next()


class GapsTrusted(ReadIsSent):
    """A batch that begins above the next offset is taken: what is between would not exist."""

    def _take(self, held: OwnedPartition, session: Session, item: Batch | Outside) -> None:
        if isinstance(item, Batch) and item.start > held.state.next:
            held.state.pass_over(item.start)
        super()._take(held, session, item)


class RepeatsTaken(ReadIsSent):
    """What a batch repeats is taken again, under the next offsets."""

    def _ingest(self, held: OwnedPartition, batch: Batch) -> None:
        shift = held.state.next - batch.start
        if shift > 0 and batch.records:
            records = [(offset + shift, value) for offset, value in batch.records]
            batch = replace(batch, records=records, stop=batch.stop + shift)
        super()._ingest(held, batch)


class ArrivesWhenTaken(Intake):
    """What is taken arrives now, on the worker's clock."""

    def _arrived(self, batch: Batch, now_ms: int) -> Arrivals:
        return Arrivals.at(now_ms)


class LostForGood(Intake):
    """A call that the channel has lost is waited for."""

    def look(self, held: OwnedPartition) -> None:
        if held.session is not None:
            held.session.next()


class SilenceIsIdle(Part):
    """Idle when the last known end has been reached and no report came for the idle time."""

    quiet: tuple[int, int] = (-1, 0)
    known = 0

    def read_to(self, offset: int, *, end: int, asked_ms: int | None) -> None:
        super().read_to(offset, end=end, asked_ms=asked_ms)
        self.known = end

    def _is_idle(self, idle_ms: int, now_ms: int) -> bool:
        if self.quiet[0] != self.next:
            self.quiet = self.next, now_ms
        return self.next >= self.known and now_ms - self.quiet[1] >= idle_ms


class AnyDelivery(SilenceIsIdle):
    """The same, if something was delivered of late, whatever it was: so it was once."""

    heard = -(1 << 62)

    def read_to(self, offset: int, *, end: int, asked_ms: int | None) -> None:
        super().read_to(offset, end=end, asked_ms=asked_ms)
        self.heard = self.world.now_ms

    def _is_idle(self, idle_ms: int, now_ms: int) -> bool:
        return super()._is_idle(idle_ms, now_ms) and now_ms - self.heard <= GAP_MS


class OneProbe(SilenceIsIdle):
    """One fresh probe is enough, if no report came for the idle time."""

    def _is_idle(self, idle_ms: int, now_ms: int) -> bool:
        return super()._is_idle(idle_ms, now_ms) and self._probes.last_for(0, now_ms=now_ms)


class Old(UnbrokenProbes):
    """A series of long ago is as good as a fresh one."""

    def last_for(self, idle_ms: int, *, now_ms: int) -> bool:
        return self._series is not None and now_ms - self._series[0] >= idle_ms


class NothingBreaks(UnbrokenProbes):
    """What comes does not break a series."""

    def broken(self) -> None: ...


class EndForgotten(Part):
    """Whatever end was seen before: the probes alone decide."""

    def _is_idle(self, idle_ms: int, now_ms: int) -> bool:
        return self._probes.last_for(idle_ms, now_ms=now_ms)


class OwnCommits(IntakeWorker):
    """Commits after flushes of its own alone."""

    def loaded(self, p: int) -> None: ...


def with_intake(intake: type[Intake], base: type[World] = IntakeWorld) -> type[World]:
    worker = type(intake.__name__, (IntakeWorker,), {"intake_class": intake})
    return type(intake.__name__, (base,), {"worker_class": worker})


def with_part(part: type[Part], base: type[World] = IntakeWorld) -> type[World]:
    worker = type(part.__name__, (IntakeWorker,), {"partition_class": part})
    return type(part.__name__, (base,), {"worker_class": worker})


def with_probes(probes: type[UnbrokenProbes], base: type[World] = IntakeWorld) -> type[World]:
    class Probed(Part):
        def prepare(self) -> None:
            super().prepare()
            self._probes = probes(GAP_MS)

    return with_part(Probed, base)


INTAKE_MUTANTS: dict[str, type[World]] = {
    "intake: gaps trusted": with_intake(GapsTrusted),
    "intake: repeats taken": with_intake(RepeatsTaken),
    "intake: arrives when taken": with_intake(ArrivesWhenTaken),
    "intake: lost calls are waited for": with_intake(LostForGood),
    "intake: no commit after a load": type("OwnCommits", (Harsh,), {"worker_class": OwnCommits}),
    "idle: by silence": with_part(SilenceIsIdle, Harsh),
    "idle: by any delivery": with_part(AnyDelivery, Harsh),
    "idle: one probe": with_part(OneProbe, Harsh),
    "idle: an old series": with_probes(Old, Harsh),
    "idle: nothing breaks a series": with_probes(NothingBreaks, Harsh),
    "idle: ends forgotten": with_part(EndForgotten, Harsh),
}
