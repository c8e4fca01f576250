"""The vectors of packed messages (docs/pack.md), which do not change within a version."""

import json
from pathlib import Path
from typing import Any

import pytest

from ldpstream.agents.state.packed import Packed, PackedError, Record, decode_packed, encode_packed
from tests.packing import make_records

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "packed.json").read_text("utf-8"))


def name_of(vector: dict[str, Any]) -> str:
    return str(vector["name"])


@pytest.mark.parametrize("vector", VECTORS["valid"], ids=name_of)
def test_packed_messages_are_written_and_read_as_listed(vector: dict[str, Any]):
    records: list[Record] = [
        (one["offset"], None if one["value"] is None else bytes.fromhex(one["value"]))
        for one in vector["messages"]
    ]
    arrived, appended = vector.get("arrived"), vector.get("appended", False)
    packed = Packed(
        vector["after"],
        vector["next"],
        vector["end"],
        make_records(records, arrived=arrived, appended=appended),
    )
    data, topic_id = bytes.fromhex(vector["packed"]), bytes.fromhex(vector["topic_id"])
    assert encode_packed(packed, partition=vector["partition"], topic_id=topic_id) == data
    found = decode_packed(data, partition=vector["partition"], topic_id=topic_id)
    assert (found.after, found.next, found.end) == (packed.after, packed.next, packed.end)
    assert list(found.records) == records
    assert found.records.appended == appended
    assert (None if found.records.arrived is None else found.records.arrived.tolist()) == arrived


@pytest.mark.parametrize("vector", VECTORS["refused"], ids=name_of)
def test_broken_packed_messages_are_refused_for_the_listed_reason(vector: dict[str, Any]):
    with pytest.raises(PackedError) as caught:
        decode_packed(
            bytes.fromhex(vector["packed"]),
            partition=vector["partition"],
            topic_id=bytes.fromhex(vector["topic_id"]),
        )
    assert caught.value.reason == vector["reason"]
