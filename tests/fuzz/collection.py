"""What a fuzz needs of a collection: its rules and reports, and messages malformed in any field."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ldpstream.agents.state.windows import WindowSpec
from ldpstream.mechanisms.families.l1.bits import L1Bits
from ldpstream.mechanisms.families.matrix.matrix import Matrix
from ldpstream.mechanisms.families.subset.selection import SubsetReports
from ldpstream.mechanisms.interface.mechanism import Mechanism
from ldpstream.mechanisms.wire.spec import CollectionSpec
from tests.fuzz.expected import Rules
from tests.seeded import SeededEntropy

EXTREME_TIMES_MS = (
    *(-(1 << 63), -(1 << 63) + 1, -(1 << 62), -1, 0, 1, (1 << 62), (1 << 63) - 1),
    *(-62_135_596_800_000, -62_135_596_800_001, 253_402_300_799_999, 253_402_300_800_000),
    4_102_444_800_000,
)
EXTREME_COUNTS = (0, 1, 2, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
BIG_JUNK_BYTES = 1_000_000
MANY_REPORTS = 20_000

Run = tuple[int, list[bytes]]


@dataclass(frozen=True, kw_only=True)
class Fuzzer:
    """Draws messages for a collection.

    `good` draws the bytes of a report that some value produces; times lie within `spread_ms` before
    `now_ms`, or a little after it.
    """

    fingerprint: bytes
    report_bytes: int
    good: Callable[[random.Random], bytes]
    now_ms: int
    spread_ms: int
    precision_ms: int
    rng: random.Random

    def message(self) -> bytes | None:
        """Return one message: a third of them are frames as devices write them."""
        rng = self.rng
        if rng.random() < 1 / 3:
            return self.frame(self._runs(self._usual_time))
        return rng.choice(_KINDS)(self)

    def messages(self, number: int, *, big: int = 0) -> Iterator[bytes | None]:
        """Yield this many messages, `big` of them large."""
        places = set(self.rng.sample(range(number), big))
        for place in range(number):
            yield self._big() if place in places else self.message()

    def frame(self, runs: list[Run], *, head: bytes | None = None) -> bytes:
        """Return a frame of these runs, in this order."""
        start = b"\x01\x00" + (len(runs) & 0xFFFF).to_bytes(2, "little") + self.fingerprint
        table = (t.to_bytes(8, "little", signed=True) + _u32(len(r)) for t, r in runs)
        return b"".join((head or start, *table, *(report for _, r in runs for report in r)))

    def _runs(self, draw_time: Callable[[], int]) -> list[Run]:
        rng = self.rng
        times_ms = sorted({draw_time() for _ in range(rng.choice((1, 1, 1, 2, 3, 8)))})
        return [(t, [self.good(rng) for _ in range(rng.choice((1, 1, 2, 5)))]) for t in times_ms]

    def _usual_time(self) -> int:
        step = self.precision_ms
        ahead = self.rng.choice((0, 0, 0, step, 8 * step))
        return (self.now_ms + ahead - self.rng.randrange(self.spread_ms)) // step * step

    def _any_time(self) -> int:
        rng = self.rng
        return rng.choice(
            (
                rng.choice(EXTREME_TIMES_MS),
                rng.getrandbits(64) - (1 << 63),
                self._usual_time() + rng.randrange(self.precision_ms),
                self.now_ms + rng.randrange(10 * self.spread_ms),
            )
        )

    def _usual(self) -> bytes:
        return self.frame(self._runs(self._usual_time))

    def _truncated(self) -> bytes:
        whole = self._usual()
        return whole[: self.rng.randrange(len(whole))]

    def _extended(self) -> bytes:
        return self._usual() + self.rng.randbytes(self.rng.randint(1, 9))

    def _without_value(self) -> bytes | None:
        return self.rng.choice((None, b"", b"\x00", b"\x01", b"\x01\x00\x01\x00"))

    def _other_head(self) -> bytes:
        """Change one byte of the head or of the runs."""
        whole = bytearray(self._usual())
        place = self.rng.randrange(min(len(whole), 36))
        whole[place] = self.rng.choice((0, 1, 2, 0x7F, 0x80, 0xFF, whole[place] ^ 1))
        return bytes(whole)

    def _flipped(self) -> bytes:
        whole = bytearray(self._usual())
        for _ in range(self.rng.randint(1, 4)):
            whole[self.rng.randrange(len(whole))] ^= 1 << self.rng.randrange(8)
        return bytes(whole)

    def _other_version(self) -> bytes:
        whole = bytearray(self._usual())
        whole[self.rng.randrange(2)] = self.rng.randrange(256)
        return bytes(whole)

    def _other_runs(self) -> bytes:
        whole = bytearray(self._usual())
        whole[2:4] = self.rng.choice((0, 1, 2, 0x7FFF, 0xFFFF)).to_bytes(2, "little")
        return bytes(whole)

    def _other_fingerprint(self) -> bytes:
        whole = bytearray(self._usual())
        whole[4:12] = self.rng.choice((bytes(8), b"\xff" * 8, self.rng.randbytes(8)))
        return bytes(whole)

    def _other_count(self) -> bytes:
        """A count that disagrees with the length, overflows, or is zero."""
        whole = bytearray(self._usual())
        run = self.rng.randrange(int.from_bytes(whole[2:4], "little"))
        whole[20 + 12 * run : 24 + 12 * run] = _u32(self.rng.choice(EXTREME_COUNTS))
        return bytes(whole)

    def _huge_counts(self) -> bytes:
        """Counts whose sum overflows 32 bits, and whose product with the length overflows 64."""
        runs = self.rng.choice((2, 300, 65_535))
        head = b"\x01\x00" + runs.to_bytes(2, "little") + self.fingerprint
        run = self._usual_time().to_bytes(8, "little", signed=True) + b"\xff" * 4
        return head + run * min(runs, 300) + self.rng.randbytes(self.rng.randrange(50))

    def _strange_times(self) -> bytes:
        return self.frame(self._runs(self._any_time))

    def _bad_reports(self) -> bytes:
        """A valid frame in which some reports are arbitrary bytes."""
        runs = self._runs(self._usual_time)
        for _, reports in runs:
            reports[self.rng.randrange(len(reports))] = self._any_report()
        return self.frame(runs)

    def _any_report(self) -> bytes:
        ones = b"\xff" * self.report_bytes
        return self.rng.choice((ones, self.rng.randbytes(self.report_bytes), self.good(self.rng)))

    def _unsorted(self) -> bytes:
        """Runs out of order, one time twice."""
        runs = self._runs(self._usual_time) + self._runs(self._any_time)
        runs.append((runs[0][0], [self._any_report()]))
        self.rng.shuffle(runs)
        return self.frame(runs)

    def _nested(self) -> bytes:
        """A frame inside a frame, as its reports or after its head."""
        inner = self._usual()
        width = self.report_bytes
        reports = [inner[at : at + width] for at in range(0, len(inner) - width + 1, width)]
        if reports and self.rng.random() < 0.5:
            return self.frame([(self._usual_time(), reports)])
        return self._usual()[:12] + inner

    def _junk(self) -> bytes:
        return self.rng.randbytes(self.rng.randrange(80))

    def _text(self) -> bytes:
        return self.rng.choice((b'{"report": "AQ=="}', b"Obj\x01", b"\x00\x00\x00\x00\x01x"))

    def _big(self) -> bytes:
        """A million bytes of junk, or of zeros after a good frame; or many good reports."""
        kind = self.rng.randrange(3)
        if kind == 0:
            return self.rng.randbytes(BIG_JUNK_BYTES)
        if kind == 1:
            return self._usual() + bytes(BIG_JUNK_BYTES)
        return self.frame([(self._usual_time(), [self.good(self.rng)] * MANY_REPORTS)])


_KINDS: tuple[Callable[[Fuzzer], bytes | None], ...] = (
    Fuzzer._truncated,
    Fuzzer._extended,
    Fuzzer._without_value,
    Fuzzer._other_head,
    Fuzzer._flipped,
    Fuzzer._other_version,
    Fuzzer._other_runs,
    Fuzzer._other_fingerprint,
    Fuzzer._other_count,
    Fuzzer._huge_counts,
    Fuzzer._strange_times,
    Fuzzer._bad_reports,
    Fuzzer._unsorted,
    Fuzzer._nested,
    Fuzzer._junk,
    Fuzzer._text,
)


def _u32(number: int) -> bytes:
    return number.to_bytes(4, "little")


def possible_reports(mechanism: Mechanism) -> Callable[[bytes], bool]:
    """Return a test of whether some value can produce a report of these bytes."""
    if isinstance(mechanism, L1Bits):
        bits = sum(extent - 1 for extent in mechanism.extents)
        return lambda report: int.from_bytes(report, "little") < 1 << bits
    if isinstance(mechanism, Matrix):
        return _numbers_within(mechanism)
    if isinstance(mechanism, SubsetReports):
        return _subset_of_a_block(mechanism)
    listed = {bytes(row) for row in mechanism.encode(mechanism.possible_reports())}
    return listed.__contains__


def _numbers_within(mechanism: Matrix) -> Callable[[bytes], bool]:
    rows = mechanism.rows
    spans = (rows.high - rows.low).tolist()
    groups = mechanism.statistic_size // (rows.count + 1)
    if groups > 1:
        spans = [groups - 1, *spans]

    def possible(report: bytes) -> bool:
        at = 0
        for span in spans:
            length = max(1, -(-int(span).bit_length() // 8))
            if int.from_bytes(report[at : at + length], "little") > span:
                return False
            at += length
        return at == len(report)

    return possible


def _subset_of_a_block(mechanism: SubsetReports) -> Callable[[bytes], bool]:
    sizes = mechanism.layout.blocks.sizes.tolist()
    # Groups of one size may have several kinds of subsets, by their budgets.
    chosen = [mechanism.subsets[kind].chosen for kind in mechanism.layout.kinds.tolist()]
    number_bytes = -(-(len(sizes) - 1).bit_length() // 8)

    def possible(report: bytes) -> bool:
        block = int.from_bytes(report[:number_bytes], "little")
        if block >= len(sizes):
            return False
        mask = int.from_bytes(report[number_bytes:], "little")
        return mask < 1 << sizes[block] and mask.bit_count() == chosen[block]

    return possible


SPREAD_MS = 200


def rules_of(spec: CollectionSpec, window: WindowSpec) -> Rules:
    return Rules(
        fingerprint=spec.fingerprint,
        report_bytes=spec.mechanism.report_bytes,
        possible=possible_reports(spec.mechanism),
        precision_ms=spec.precision_ms,
        size_ms=window.size_ms,
        pane_ms=window.pane_ms,
        grace_ms=window.grace_ms,
        future_ms=window.future_ms,
    )


def fuzzer_of(spec: CollectionSpec, rng: random.Random, *, now_ms: int) -> Fuzzer:
    mechanism = spec.mechanism
    drawn = mechanism.privatize(np.arange(200) % mechanism.size, entropy=SeededEntropy(1))
    good = [bytes(row) for row in mechanism.encode(drawn)]
    return Fuzzer(
        fingerprint=spec.fingerprint,
        report_bytes=mechanism.report_bytes,
        good=lambda draw: draw.choice(good),
        now_ms=now_ms,
        spread_ms=SPREAD_MS,
        precision_ms=spec.precision_ms,
        rng=rng,
    )
