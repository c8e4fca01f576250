"""Every rule of the intake and of idleness taken away in turn.

Two rules have no mutant. A probe counts from before it was asked for, not from when it was seen:
one fetch of a partition is in flight at a time, so the two differ by one gap at most. A series has
no gaps: the simulation does not notice its absence within 1,500 runs, so `test_closing` tests it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from ldpstream.agents.engine.intake import Intake, OwnedPartition
from ldpstream.agents.engine.source import Batch, Outside, Session
from ldpstream.agents.state.batch import UNDATED, Record
from ldpstream.agents.state.closing import UnbrokenProbes
from tests.stream.simulation.intake import GAP_MS, Harsh, IntakeWorker, IntakeWorld, Part
from tests.stream.simulation.patched import PatchedWorld, mutant
from tests.stream.simulation.setting import PASSED

_PROBES = "ldpstream.agents.state.partition.UnbrokenProbes"


class PatchedHarsh(PatchedWorld, Harsh):
    """A harsh world with functions of the product replaced."""


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


@mutant("intake: gaps trusted", 115, IntakeWorld, worker=IntakeWorker, part="intake_class")
class GapsTrusted(ReadIsSent):
    """A batch that begins above the next offset is taken, as if nothing were in between."""

    def _take(self, held: OwnedPartition, session: Session, item: Batch | Outside) -> None:
        if isinstance(item, Batch) and item.start > held.state.next:
            held.state.read_to(item.start, end=item.end, asked_ms=None)
        super()._take(held, session, item)


@mutant("intake: repeats taken", 35, IntakeWorld, worker=IntakeWorker, part="intake_class")
class RepeatsTaken(ReadIsSent):
    """Records that a batch repeats are taken again, under the next offsets."""

    def _ingest(self, held: OwnedPartition, batch: Batch) -> None:
        shift = held.state.next - batch.start
        if shift > 0 and batch.records:
            records = [(offset + shift, value) for offset, value in batch.records]
            batch = replace(batch, records=records, stop=batch.stop + shift)
        super()._ingest(held, batch)


@mutant("intake: arrives when taken", 19, IntakeWorld, worker=IntakeWorker, part="intake_class")
class ArrivesWhenTaken(Intake):
    """Records arrive when they are taken, on the worker's clock."""

    def _ingest(self, held: OwnedPartition, batch: Batch) -> None:
        super()._ingest(held, replace(batch, dates=UNDATED))


@mutant(
    "intake: lost batches are waited for",
    578,
    IntakeWorld,
    worker=IntakeWorker,
    part="intake_class",
)
class LostForGood(Intake):
    """The intake waits for a batch that the channel has lost."""

    def resume_reading(self, held: OwnedPartition) -> None:
        if held.session is not None:
            held.session.next()


@mutant("idle: by silence", 117, Harsh, worker=IntakeWorker)
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


@mutant("idle: by any delivery", 195, Harsh, worker=IntakeWorker)
class AnyDelivery(SilenceIsIdle):
    """The same, if anything was delivered lately."""

    heard = -(1 << 62)

    def read_to(self, offset: int, *, end: int, asked_ms: int | None) -> None:
        super().read_to(offset, end=end, asked_ms=asked_ms)
        self.heard = self.world.now_ms

    def _is_idle(self, idle_ms: int, now_ms: int) -> bool:
        return super()._is_idle(idle_ms, now_ms) and now_ms - self.heard <= GAP_MS


@mutant("idle: one probe", 195, Harsh, worker=IntakeWorker)
class OneProbe(SilenceIsIdle):
    """One fresh probe is enough, if no report came for the idle time."""

    def _is_idle(self, idle_ms: int, now_ms: int) -> bool:
        return super()._is_idle(idle_ms, now_ms) and self._probes.last_for(0, now_ms=now_ms)


@mutant("idle: an old series", 117, PatchedHarsh, _PROBES)
class Old(UnbrokenProbes):
    """A series of long ago is as good as a fresh one."""

    def last_for(self, idle_ms: int, *, now_ms: int) -> bool:
        return self.series is not None and now_ms - self.series[0] >= idle_ms


@mutant("idle: nothing breaks a series", 83, PatchedHarsh, _PROBES)
class NothingBreaks(UnbrokenProbes):
    """New records do not break a series."""

    def broken(self) -> None: ...


@mutant("idle: ends forgotten", 195, Harsh, worker=IntakeWorker)
class EndForgotten(Part):
    """The probes alone decide, whatever end was seen before."""

    def _is_idle(self, idle_ms: int, now_ms: int) -> bool:
        return self._probes.last_for(idle_ms, now_ms=now_ms)


@mutant("idle: not with refused messages", 1, IntakeWorld, worker=IntakeWorker)
class AnythingCounts(Part):
    """A message that this state refuses or finds late keeps the partition from being idle."""

    def ingest(self, records: Sequence[Record], **given: Any) -> None:
        before = len(self.outcomes)
        super().ingest(records, **given)
        if any(outcome != PASSED for _, _, outcome in self.outcomes[before:]):
            self._probes.counted()
            self.work = replace(self.work, idle=False)


@mutant("idle: not with messages of other specs", 4, IntakeWorld, worker=IntakeWorker)
class ForeignCount(Part):
    """Any message keeps the partition from being idle, also one of an accepted spec."""

    def ingest(self, records: Sequence[Record], **given: Any) -> None:
        super().ingest(records, **given)
        if records:
            self._probes.counted()
            self.work = replace(self.work, idle=False)


@mutant("idle: also with reports that count", 83, PatchedHarsh, _PROBES)
class CountedProves(UnbrokenProbes):
    """A report that counts does not break a series."""

    def counted(self) -> None: ...


@mutant("intake: no commit after a load", 223, Harsh)
class OwnCommits(IntakeWorker):
    """Commits after its own flushes alone."""

    def loaded(self, p: int) -> None: ...
