"""The six invariants, numbered as in the messages of violations.

1. Finals equal the ledger of accepted reports; every report is counted, late, rejected or lost; a
   outcome never changes; late and rejected reports are copied before their head.
2. Finals of a window never differ.
3. No view is torn, and no reader goes back.
4. Once faults stop, all windows with data become final in bounded steps, even if messages that do
   not count go on in every partition, and no garbage stays.
5. The compacted log gives the same state as the full log, and incremental evaluation the same as a
   full one.
6. Commits never run ahead.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ldpstream.agents.state.cell_encoding import decode_chunk, decode_late, decode_totals
from ldpstream.agents.state.closing import Publication
from ldpstream.agents.state.flushes import Copy
from ldpstream.agents.state.listing import windows
from ldpstream.agents.state.records import Head
from ldpstream.agents.state.replica import behind
from ldpstream.agents.state.view import panes_between
from ldpstream.agents.state.windows import NEVER
from ldpstream.mechanisms.base.errors import FrameError
from ldpstream.mechanisms.wire.frame import decode_frame
from tests.stream.simulation.closed import check_counts
from tests.stream.simulation.evaluation import evaluate
from tests.stream.simulation.setting import PASSED, Report, ViolationError, demand

if TYPE_CHECKING:
    from tests.stream.simulation.worker import Outcome, Reader
    from tests.stream.simulation.world import World


class Checks:
    """The ledger of a run, (offset, index) -> outcome of winning heads, and what has to agree."""

    def __init__(self, world: World) -> None:
        self.world = world
        partitions = range(len(world.source))
        self.ledger: list[dict[tuple[int, int], str]] = [{} for _ in partitions]
        self.outcomes: list[Counter[str]] = [Counter() for _ in partitions]
        self.counts: list[Counter[tuple[int, int]]] = [Counter() for _ in partitions]
        self.late: list[Counter[int]] = [Counter() for _ in partitions]
        self.copied: dict[tuple[int, int, str], Counter[object]] = {}
        self.published: dict[int, bytes] = {}
        self.unknown: set[int] = set()
        self.lost_from: list[dict[int, int]] = [{} for _ in partitions]

    def land_copy(self, p: int, copy: Copy) -> None:
        told = dict(copy.headers)
        offset, reason = int(told["offset"]), told["reason"].decode()
        demand(int(told["partition"]) == p, "(1) a copy of another partition")
        demand((copy.kind == "late") == (reason == "late"), "(1) a copy of another kind")
        message = self.world.source[p][offset]
        if message.reports == (None,):
            demand(copy.value == (message.value or b""), "(1) a copy differs")
            rows = Counter(message.reports)
        else:
            spec = self.world.context.spec
            try:
                frame = decode_frame(
                    copy.value, fingerprint=spec.fingerprint, report_bytes=spec.report_bytes
                )
            except FrameError as error:
                raise ViolationError(f"(1) a copy differs: {error}") from error
            times = frame.times_ms.repeat(frame.counts).tolist()
            payload = map(bytes, frame.payload)
            rows = Counter(map(self.read_report, times, payload))
            demand(rows <= Counter(message.reports), "(1) a copy of what was never sent")
        seen = self.copied.setdefault((p, offset, reason), Counter())
        seen |= rows
        self.copied[p, offset, reason] = seen

    def read_report(self, time_ms: int, row: bytes) -> Report:
        """Return a report from its time and payload."""
        return Report(time_ms, row[0], row[1:])

    def win(self, p: int, before: Head, head: Head, outcomes: Sequence[Outcome]) -> None:
        pane = self.world.context.window.pane
        source = self.world.source[p]
        demand(
            head.next >= before.next
            and head.clock >= before.clock
            and head.closed >= before.closed,
            "(3) next goes back",
        )
        needed: dict[tuple[int, str], Counter[object]] = {}
        for offset, index, outcome in outcomes:
            known = self.ledger[p].setdefault((offset, index), outcome)
            demand(known == outcome, "(1) an outcome changed")
            self.outcomes[p][outcome] += 1
            report = source[offset].reports[index]
            self.one_report(p, outcome, report)
            if outcome == "lost":
                self.lost_from[p][offset] = head.closed
                # Reports lost before anything was counted belong to unknown windows.
                if before.closed == NEVER:
                    self.unknown.add(p)
            if outcome == "counted":
                demand(pane(report.time_ms) >= before.closed, "(1) counted in a closed pane")
                self.counts[p][pane(report.time_ms), report.symbol] += 1
                continue
            if outcome == "late":
                demand(pane(report.time_ms) < head.closed, "(1) late in an open pane")
                self.late[p][pane(report.time_ms)] += 1
            if outcome not in ("lost", PASSED):
                needed.setdefault((offset, outcome), Counter())[report] += 1
        for (offset, outcome), rows in needed.items():
            copied = self.copied.get((p, offset, outcome), Counter())
            demand(rows <= copied, "(1) late or rejected without a copy")
        self._totals(p, head)

    def one_report(self, p: int, outcome: str, report: Report | None) -> None:
        """Check an outcome against the rule of one report; reports come in the order of offsets."""

    def _totals(self, p: int, head: Head) -> None:
        """Compare a winning head's counters with the ledger."""
        outcomes = self.outcomes[p]
        total = sum(len(message.reports) for message in self.world.source[p][: head.next])
        rejected = {
            outcome: n
            for outcome, n in outcomes.items()
            if outcome not in ("counted", "late", "lost", PASSED)
        }
        demand(
            total == len(self.ledger[p]) and head.n == outcomes["counted"],
            "(1) counted + late + rejected + lost != all",
        )
        demand(
            head.late == outcomes["late"] and dict(head.rejected) == rejected,
            "(1) late or rejected is not the ledger's",
        )
        lost = {offset for (offset, _), outcome in self.ledger[p].items() if outcome == "lost"}
        demand(head.lost == len(lost), "(1) lost is not the ledger's")

    def commit(self, p: int, offset: int) -> None:
        demand(offset <= self.world.official[p].next, "(6) a commit runs ahead")

    def publish(self, publication: Publication) -> None:
        window = self.world.context.window.starting(publication.window_start_ms)
        span = (publication.window_start_ms, publication.window_end_ms)
        if window is None or span != self.world.context.window.span(window):
            raise ViolationError("(2) no window")
        known = self.published.setdefault(window, publication.content)
        demand(known == publication.content, f"(2) finals differ: {known} {publication.content}")

    def view(self, reader: Reader, before: Head | None) -> None:
        """Check what a replica shows at the end of its log."""
        p, replica, official = reader.p, reader.replica, self.world.official[reader.p]
        head = replica.head
        demand(head is not None, "(3) nothing at the end of the log")
        demand(
            before is None or (head.next >= before.next and head.seq >= before.seq),
            "(3) a reader goes back",
        )
        demand(
            (head.epoch, head.seq) == (official.epoch, official.seq),
            "(5) not the head of the full log",
        )
        if self.world.shadow:
            full = evaluate(self.world.prefix, self.world.context.window, p, reader.store)
            demand(head == full.head, "(5) not the head of a full evaluation")
            cells = {name: cell.key for name, cell in replica.cells.items()}
            demand(cells == full.cells, "(5) not the cells of a full evaluation")
            demand(set(replica.dead()) == full.dead, "(5) not the dead of a full evaluation")
            size = sum(len(cell.value) for cell in replica.cells.values())
            demand(replica.size_bytes == size, "(5) not the size of the live cells")
        if head is before:
            return
        got: dict[tuple[int, int], int] = {}
        n: Counter[int] = Counter()
        late: dict[int, int] = {}
        sums: Counter[int] = Counter()
        for name in replica.cells:
            if name.kind == "count":
                count = int(decode_chunk(replica.value(name), 1)[0])
                got[name.number, name.chunk] = count
                n[name.number] += count
            elif name.kind == "n":
                sums[name.number], late[name.number], _ = decode_totals(replica.value(name))
            elif name.kind == "late":
                late[name.number] = decode_late(replica.value(name))
        demand(n == sums, f"(3) torn view {n} {sums}")
        demand(
            head.n - head.gone == sum(sums.values()), "(3) torn view: the panes do not add up to n"
        )
        check_counts(self, p, head, got)
        want_late = {pane: n for pane, n in self.late[p].items() if pane >= head.expired}
        got_late = {pane: n for pane, n in late.items() if n}
        demand(got_late == want_late, "(1) late is not the ledger's")

    def windows_with_data(self) -> set[int]:
        holding = self.world.context.window.windows
        panes = {pane for counts in self.counts for pane, _ in counts}
        return {window for pane in panes for window in holding(pane)}

    def all_final(self) -> bool:
        """Return whether every window with data is published, and known to be."""
        windows, head = self.windows_with_data(), self.world.official[0]
        return (
            windows <= self.published.keys()
            and all(window < head.published for window in windows)
            # Windows whose reports were all lost have finals, too.
            and head.published == head.final
        )

    def done(self) -> bool:
        return self.all_final() and all(
            self.world.committed[p] == len(self.world.source[p])
            for p in range(self.world.partitions)
        )

    def finish(self) -> None:
        """Check the end of a run: everything final and exact, nothing left over."""
        world = self.world
        demand(self.done(), "(4) not all windows became final")
        counts = sum(self.counts, Counter())
        late = sum(self.late, Counter())
        rejected = sum(sum(head.rejected.values()) for head in world.official)
        for number, content in self.published.items():
            told = json.loads(content)[:8]
            start_ms, end_ms, statistic, n, late_then, rejected_then, lost, withheld = told
            panes = panes_between(world.context, start_ms, end_ms)
            symbols = range(len(statistic))
            want = [sum(counts[pane, symbol] for pane in panes) for symbol in symbols]
            told = f"(1) final {number}: {content!r}, ledger {want}"
            demand(self.stands_for(number, (start_ms, end_ms), withheld=withheld), told)
            if withheld:
                demand(not any(statistic), told)
            demand((withheld or statistic == want) and n == sum(want) and (n > 0 or lost > 0), told)
            demand(late_then <= sum(late[pane] for pane in panes), told)
            demand(rejected_then <= rejected, told)
        self._lost_is_marked()
        self._windows()
        for p in range(world.partitions):
            self._finish_partition(p)

    def stands_for(self, number: int, span: tuple[int, int], *, withheld: bool) -> bool:
        """Return whether a final of a window may answer a span: here only the window's own."""
        return span == self.world.context.window.span(number) and not withheld

    def _lost_is_marked(self) -> None:
        """Check that finals say what retention deleted, where brokers date records."""
        world, window = self.world, self.world.context.window
        marked = {number for number, content in self.published.items() if json.loads(content)[6]}
        if world.times.dated != "by brokers" or not world.times.checked:
            return
        for p, ledger in enumerate(self.ledger):
            for (offset, index), outcome in ledger.items():
                report = world.source[p][offset].reports[index]
                if outcome != "lost" or report is None or not self._was_open(p, offset, report):
                    continue
                for number in window.windows(window.pane(report.time_ms)):
                    said = number in marked or number >= world.official[0].final
                    said = said or (number not in self.published and p in self.unknown)
                    demand(said, f"(1) final {number} does not say that it lacks {report}")

    def _was_open(self, p: int, offset: int, report: Report) -> bool:
        """Return whether a lost report would have been counted."""
        window, arrived = self.world.context.window, self.world.times.arrived[p][offset]
        size = self.world.context.spec.mechanism.size
        on_time = report.time_ms <= arrived + window.future_ms and report.symbol < size
        closed = self.lost_from[p].get(offset, NEVER)
        return on_time and window.pane(report.time_ms) >= closed

    def _windows(self) -> None:
        """Compare what a query lists with the ledger, where panes have not expired."""
        world, window = self.world, self.world.context.window
        readers = [world.fresh_reader(p) for p in range(world.partitions)]
        want: dict[int, list[int]] = {}
        for p, reader in enumerate(readers):
            own, first = reader.replica.head.expired, readers[0].replica.head
            kept = [
                (pane, 0, n)
                for (pane, _), n in self.counts[p].items()
                if pane >= (first.expired if pane < first.gathered else own)
            ]
            kept += [(pane, 1, n) for pane, n in self.late[p].items() if pane >= own]
            for pane, column, n in kept:
                for number in window.windows(pane):
                    want.setdefault(number, [0, 0])[column] += n
        replicas = [reader.replica for reader in readers]
        demand(not behind(replicas), "(9) a pane is handed over, and not gathered")
        got = windows(world.context, replicas)
        told = {info.number: [info.n, info.late] for info in got if info.n or info.late}
        demand(told == want, f"(1) windows listed: {told}, ledger {want}")
        demand(all(info.published for info in got if info.n), "(4) a window is not published")

    def _finish_partition(self, p: int) -> None:
        world = self.world
        demand(
            world.official[p].next == world.committed[p] == len(world.source[p]),
            "(4) not all consumed or committed",
        )
        world.fresh_reader(p, garbage=True)
        world.compact(p, world.end[p], drop_deletions=True)
        demand(not world.fresh_reader(p).replica.dead(), "(4) garbage stays")
