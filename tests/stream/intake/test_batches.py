"""A batch taken whole holds what aiokafka makes of it record by record, and goes on where it does.

Every kind of batch: all codecs, keys, headers, no value, offsets that compaction has
taken out, transactions of both fates and their markers, and fetches that begin within a batch.
"""

import random
import struct
import tomllib
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.consumer.fetcher import READ_COMMITTED, FetchResult, PartitionRecords
from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.record.util import calc_crc32c_py

from ldpstream.agents.kafka.whole_batches import Run, runs, take_whole
from tests.soak import seeds

ONE = TopicPartition("trips", 0)
CODECS = range(5)
_CONTROL = 0x20
_ATTRIBUTES, _CRC, _CRC_START = 21, 17, 21


@dataclass
class State:
    """A partition's place, as a consumer keeps it."""

    position: int
    paused: bool = False

    def consumed_to(self, position: int) -> None:
        self.position = position


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

    def fetched(self, start: int, *, damaged: bool = False) -> tuple[Any, State]:
        """Return what a broker answers: whole batches, from the one on that holds the offset.

        With them come the aborted transactions that are not over before it.
        """
        state = State(start)
        data = b"".join(batch for end, batch in self._batches if end > start)
        if damaged:
            data = data[:-1] + bytes([data[-1] ^ 1])
        assignment = SimpleNamespace(active=True, state_value=lambda _: state)
        aborted = [(producer, first) for producer, first, end in self.aborted if end > start]
        records = PartitionRecords(
            *(ONE, MemoryRecords(data), aborted, start, None, None, True, READ_COMMITTED)
        )
        return FetchResult(
            ONE, assignment=assignment, partition_records=records, backoff=0.0
        ), state


def whole(result: Any) -> Any:
    """Return a fetch as a consumer keeps it that takes batches whole."""
    consumer = SimpleNamespace(_fetcher=SimpleNamespace(_records={}))
    take_whole(cast("AIOKafkaConsumer", consumer))
    consumer._fetcher._records[ONE] = result
    return consumer._fetcher._records[ONE]


@pytest.mark.soak
@pytest.mark.parametrize("seed", seeds(20, soak=1_000))
def test_batches_hold_what_their_records_hold(seed: int) -> None:
    rng = random.Random(seed)
    log = Log(rng)
    for _ in range(12):
        log.grow()
    start = rng.choice([0, rng.randrange(log.end)])
    plain, plain_state = log.fetched(start)
    expected = [(record.offset, record.value) for record in plain.getall()]

    result, state = log.fetched(start)
    result, got, places = whole(result), [], []
    while result.has_more():
        for run in runs(result.getall(rng.choice([1, 2, 5]))):
            got += list(zip(run.offsets, run.values, strict=True))
        places.append(state.position)
        assert not got or state.position > got[-1][0]
    assert got == expected
    assert places == sorted(places)
    assert state.position == plain_state.position == log.end
    # A fetch may begin again at any place in between.
    again, _ = log.fetched(places[0])
    rest = [record.offset for record in again.getall()]
    assert rest == [offset for offset, _ in expected if offset >= places[0]]


def test_only_an_aiokafka_whose_internals_are_known_is_installed() -> None:
    project = Path(__file__).resolve().parents[3] / "pyproject.toml"
    assert "aiokafka>=0.14,<0.15" in tomllib.loads(project.read_text())["project"]["dependencies"]


def test_a_damaged_batch_is_refused_as_before() -> None:
    log = Log(random.Random(0))
    log.grow()
    result, state = log.fetched(0, damaged=True)
    consumer = SimpleNamespace(_fetcher=SimpleNamespace(_records={}))
    take_whole(cast("AIOKafkaConsumer", consumer))
    waiting = consumer._fetcher._records
    waiting[ONE] = result
    result.getall()
    assert (result.has_more(), state.position < log.end) == (False, True)
    del waiting[ONE]
    with pytest.raises(CorruptRecordException):
        waiting[ONE].check_raise()


def test_records_one_by_one_are_a_run_too() -> None:
    records = [
        SimpleNamespace(offset=o, value=bytes([o]), timestamp=o, timestamp_type=0)
        for o in (4, 5, 7)
    ]
    (run,) = runs(records)
    assert (list(run.offsets), run.values, run.offset) == ([4, 5, 7], [b"\4", b"\5", b"\7"], 7)
    assert Run.of(records[:2]).offsets == range(4, 6)
    assert list(runs([])) == []
    mixed = runs([records[0], Run.of(records[1:2]), records[2]])
    assert [list(run.offsets) for run in mixed] == [[4], [5], [7]]
