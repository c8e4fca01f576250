"""Every rule of the intake and of idleness taken away in turn.

Two rules have no mutant. A probe counts from before it was asked for, not from when it was seen:
one fetch of a partition is in flight at a time, so the two differ by one gap at most. A series has
no gaps: the simulation does not notice its absence within 1,500 runs, so `test_probes` tests it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from ldpstream.agents.engine.intake import Intake, OwnedPartition
from ldpstream.agents.engine.source import Batch, Outside, Session
from ldpstream.agents.state.batch import UNDATED, Record
from ldpstream.agents.state.closing import UnbrokenProbes
from tests.stream.simulation.intake import GAP_MS, Harsh, IntakeWorker, IntakeWorld, Part
from tests.stream.simulation.patched import with_partition, with_worker
from tests.stream.simulation.setting import PASSED
from tests.stream.simulation.world import World


@dataclass(frozen=True, eq=False)
class Sent:
    """A batch that has left its session."""

    held: OwnedPartition
    session: Session
    item: Batch | Outside


class ReadIsSent(Intake):
    """What is sent leaves its session, so it may be lost, or come twice.

    The product keeps batches in their session, so gaps and repeats come from errors alone. Mutants
    that take the rules for these away need this channel to be noticed.
    """

    def _send(self, held: OwnedPartition, session: Session) -> None:
        self.channel.send_batch(cast("Batch", Sent(held, session, session.take())))

    def count(self, batch: Batch) -> bool:
        sent = cast("Sent", batch)
        sent.session.called = False
        if sent.session is not sent.held.session:
            return False
        self._take(sent.held, sent.session, sent.item)
        sent.session.next()
        return True


class GapsTrusted(ReadIsSent):
    """A batch that begins above the next offset is taken, as if nothing were in between."""

    def _take(self, held: OwnedPartition, session: Session, item: Batch | Outside) -> None:
        if isinstance(item, Batch) and item.start > held.state.next:
            held.state.read_to(item.start, end=item.end, asked_ms=None)
        super()._take(held, session, item)


class RepeatsTaken(ReadIsSent):
    """Records that a batch repeats are taken again, under the next offsets."""

    def _ingest(self, held: OwnedPartition, batch: Batch) -> None:
        shift = held.state.next - batch.start
        if shift > 0 and batch.records:
            records = [(offset + shift, value) for offset, value in batch.records]
            batch = replace(batch, records=records, stop=batch.stop + shift)
        super()._ingest(held, batch)


class ArrivesWhenTaken(Intake):
    """Records arrive when they are taken, on the worker's clock."""

    def _ingest(self, held: OwnedPartition, batch: Batch) -> None:
        super()._ingest(held, replace(batch, dates=UNDATED))


class LostForGood(Intake):
    """The intake waits for a batch that the channel has lost."""

    def resume_reading(self, held: OwnedPartition) -> None:
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
    """The same, if anything was delivered lately."""

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
        return self.series is not None and now_ms - self.series[0] >= idle_ms


class NothingBreaks(UnbrokenProbes):
    """New records do not break a series."""

    def broken(self) -> None: ...


class EndForgotten(Part):
    """The probes alone decide, whatever end was seen before."""

    def _is_idle(self, idle_ms: int, now_ms: int) -> bool:
        return self._probes.last_for(idle_ms, now_ms=now_ms)


class AnythingCounts(Part):
    """A message that this state refuses or finds late keeps the partition from being idle."""

    def ingest(self, records: Sequence[Record], **given: Any) -> None:
        before = len(self.outcomes)
        super().ingest(records, **given)
        if any(outcome != PASSED for _, _, outcome in self.outcomes[before:]):
            self._probes.counted()
            self.work = replace(self.work, idle=False)


class ForeignCount(Part):
    """Any message keeps the partition from being idle, also one of an accepted spec."""

    def ingest(self, records: Sequence[Record], **given: Any) -> None:
        super().ingest(records, **given)
        if records:
            self._probes.counted()
            self.work = replace(self.work, idle=False)


class CountedProves(UnbrokenProbes):
    """A report that counts does not break a series."""

    def counted(self) -> None: ...


class OwnCommits(IntakeWorker):
    """Commits after its own flushes alone."""

    def loaded(self, p: int) -> None: ...


def with_intake(intake: type[Intake]) -> type[World]:
    worker = type(intake.__name__, (IntakeWorker,), {"intake_class": intake})
    return with_worker(worker, IntakeWorld)


def with_part(part: type[Part]) -> type[World]:
    return with_partition(part, Harsh, worker=IntakeWorker)


def with_live(part: type[Part]) -> type[World]:
    """Return a world that is noticed by what never becomes final: the harsh one takes longer."""
    return with_partition(part, IntakeWorld, worker=IntakeWorker)


def with_probes(probes: type[UnbrokenProbes]) -> type[World]:
    class Probed(Part):
        def prepare(self) -> None:
            super().prepare()
            self._probes = probes(GAP_MS)

    return with_part(Probed)


INTAKE_MUTANTS: dict[str, type[World]] = {
    "intake: gaps trusted": with_intake(GapsTrusted),
    "intake: repeats taken": with_intake(RepeatsTaken),
    "intake: arrives when taken": with_intake(ArrivesWhenTaken),
    "intake: lost batches are waited for": with_intake(LostForGood),
    "intake: no commit after a load": with_worker(OwnCommits, Harsh),
    "idle: by silence": with_part(SilenceIsIdle),
    "idle: by any delivery": with_part(AnyDelivery),
    "idle: one probe": with_part(OneProbe),
    "idle: an old series": with_probes(Old),
    "idle: nothing breaks a series": with_probes(NothingBreaks),
    "idle: ends forgotten": with_part(EndForgotten),
    "idle: not with refused messages": with_live(AnythingCounts),
    "idle: not with messages of other specs": with_live(ForeignCount),
    "idle: also with reports that count": with_probes(CountedProves),
}
