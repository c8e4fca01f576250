"""A consumer reads what aiokafka itself reads of batches, and ends at the same offset.

Batches are of every kind: all codecs, keys, headers, records without a value, offsets removed by
compaction, committed and aborted transactions with their markers, and fetches that begin within a
batch.
"""

import random
import struct
import tomllib
from pathlib import Path
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.util import calc_crc32c_py

from tests.fetched import Consumer, Place, fetch_result
from tests.soak import seeds

ONE = TopicPartition("trips", 0)
CODECS = range(5)
_CONTROL = 0x20
_ATTRIBUTES, _CRC, _CRC_START = 21, 17, 21


class Log:
    """Batches of a partition, and the aborted transactions in it."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.end = rng, 0
        self.aborted: list[tuple[int, int, int]] = []
        self._batches: list[tuple[int, bytes]] = []

    def grow(self) -> None:
        kind = self.rng.choice(["plain", "plain", "gaps", "committed", "aborted"])
        if kind in {"committed", "aborted"}:
            producer, first = self.rng.randrange(1, 4), self.end
            for _ in range(self.rng.randint(1, 2)):
                self._batch(producer=producer)
            self._marker(producer, commit=kind == "committed")
            if kind == "aborted":
                self.aborted.append((producer, first, self.end))
        else:
            self._batch(gaps=kind == "gaps")

    def _batch(self, *, producer: int = -1, gaps: bool = False) -> None:
        builder = self._builder(self.rng.choice(CODECS), producer)
        offset = 0
        for _ in range(self.rng.randint(1, 30)):
            offset += self.rng.choice([1, 5]) if gaps else 1
            headers = [("trace", b"1")] if self.rng.random() < 0.2 else []
            assert builder.append(offset - 1, 1_000, self._key(), self._value(), headers)
        self._write(bytearray(builder.build()), offset)

    def _marker(self, producer: int, *, commit: bool) -> None:
        builder = self._builder(0, producer)
        builder.append(0, 1_000, struct.pack(">HH", 0, commit), b"", [])
        batch = bytearray(builder.build())
        batch[_ATTRIBUTES + 1] |= _CONTROL
        self._write(batch, 1)

    def _builder(self, codec: int, producer: int) -> Any:
        transactional = producer >= 0
        return DefaultRecordBatchBuilder(2, codec, transactional, producer, 0, 0, 1 << 14)

    def _write(self, batch: bytearray, length: int) -> None:
        struct.pack_into(">q", batch, 0, self.end)
        struct.pack_into(">I", batch, _CRC, calc_crc32c_py(bytes(batch[_CRC_START:])))
        self.end += length
        self._batches.append((self.end, bytes(batch)))

    def _key(self) -> bytes | None:
        return self.rng.choice([None, b"key"])

    def _value(self) -> bytes | None:
        return self.rng.choice([None, b"", b"abc", self.rng.randbytes(self.rng.randint(1, 40))])

    def from_(self, start: int) -> bytes:
        """Return what a broker answers: whole batches, beginning with the offset's own."""
        return b"".join(batch for end, batch in self._batches if end > start)

    def aborted_from(self, start: int) -> list[tuple[int, int]]:
        """Return the aborted transactions that a broker sends with it: those that end later."""
        return [(producer, first) for producer, first, end in self.aborted if end > start]


@pytest.mark.soak
@pytest.mark.parametrize("seed", seeds(20, soak=1_000))
async def test_batches_hold_what_aiokafka_reads(seed: int) -> None:
    rng = random.Random(seed)
    log = Log(rng)
    for _ in range(12):
        log.grow()
    start = rng.choice([0, rng.randrange(log.end)])
    data, aborted, plain = log.from_(start), log.aborted_from(start), Place(start)
    expected = fetch_result(ONE, data, plain, aborted).getall()

    consumer, found, places = Consumer(), [], []
    consumer.answered(ONE, data, start=start, aborted=aborted)
    while some := (await consumer.poll(rng.choice([1, 2, 5]))).get(ONE, []):
        found += some
        places.append(consumer.places[ONE].position)
        assert places[-1] > some[-1].offset
    assert found == expected
    assert places == sorted(places)
    assert consumer.places[ONE].position == plain.position == log.end
    # Another fetch may begin at any offset in between.
    for place in places[:1]:
        consumer.answered(ONE, log.from_(place), start=place, aborted=log.aborted_from(place))
        rest = (await consumer.poll()).get(ONE, [])
        assert rest == [record for record in expected if record.offset >= place]


def test_aiokafka_is_pinned_to_versions_whose_internals_are_known() -> None:
    project = Path(__file__).resolve().parents[3] / "pyproject.toml"
    assert "aiokafka>=0.14,<0.15" in tomllib.loads(project.read_text())["project"]["dependencies"]
