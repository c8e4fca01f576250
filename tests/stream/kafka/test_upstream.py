"""What `broker/patches` mends is still wrong in aiokafka: a patch whose test fails can go."""

import subprocess
import sys

import pytest
from aiokafka import TopicPartition
from aiokafka.consumer.fetcher import READ_COMMITTED, PartitionRecords
from aiokafka.record.memory_records import MemoryRecords

from tests.unreadable import unreadable


def test_a_batch_that_cannot_be_read_raises_at_every_fetch() -> None:
    records = MemoryRecords(unreadable([b"readable"]))
    place = TopicPartition("trips", 0)
    read = PartitionRecords(place, records, [], 0, None, None, True, READ_COMMITTED)
    with pytest.raises(UnicodeDecodeError):
        list(read)


def test_later_errors_have_no_names() -> None:
    # In a process of its own: the names are added to the table of the whole process.
    code = "from aiokafka.errors import for_code; print(for_code(87).__name__)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "UnknownError"
