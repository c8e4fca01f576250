"""What a broker says about topics: partitions are counted, whatever fields they have."""

import struct
from types import SimpleNamespace
from typing import cast
from uuid import UUID

import pytest
from aiokafka.admin import AIOKafkaAdminClient

from ldpstream.agents.broker.metadata import _MetadataResponse_v12, describe

ID = UUID(int=7)


def compact(number: int) -> bytes:
    """Return a compact length: the number plus one, seven bits a byte, the lowest first."""
    number += 1
    found = b""
    while number > 127:
        found, number = found + bytes([number & 127 | 128]), number >> 7
    return found + bytes([number])


def partition(number: int, replicas: list[int]) -> bytes:
    nodes = compact(len(replicas)) + b"".join(struct.pack(">i", node) for node in replicas)
    # Offline replicas are null, and a tagged field follows.
    return struct.pack(">hiii", 0, number, 1, 5) + 2 * nodes + b"\0" + b"\x01\x00\x03abc"


def topic(name: bytes, partitions: int, replicas: list[int]) -> bytes:
    told = b"".join(partition(number, replicas) for number in range(partitions))
    head = struct.pack(">h", 0) + compact(len(name)) + name + ID.bytes + b"\0"
    return head + compact(partitions) + told + struct.pack(">i", 1 << 3) + b"\0"


@pytest.mark.parametrize(("partitions", "replicas"), [(0, []), (3, [1]), (300, [1, 2, 3])])
async def test_partitions_are_counted(partitions: int, replicas: list[int]) -> None:
    topics = topic(b"trips", partitions, replicas) + topic(b"late", 1, [2])
    answer = struct.pack(">i", 0) + compact(0) + compact(1) + b"x" + struct.pack(">i", 1)
    answer += compact(2) + topics + b"\0"

    async def send(_: object) -> _MetadataResponse_v12:
        return _MetadataResponse_v12.decode(answer)

    client = cast("AIOKafkaAdminClient", SimpleNamespace(_send_request=send))
    found = await describe(client, ["trips", "late"])
    assert {name: state.partitions for name, state in found.items()} == {
        "trips": partitions,
        "late": 1,
    }
    assert found["late"].id == ID
    assert found["trips"].permitted == {"read"}
