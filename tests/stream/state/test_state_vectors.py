"""A stored state is read, and written identically: `tests/vectors/state.json`.

Bytes never change within a format: a change to how state is written needs a new number and a new
file, and a release that reads the older one keeps its file. This one has the changelogs of two
partitions (`log` and `others`), which gather panes, `records` of the remaining kinds, and what a
reader shows and stores of the first.
"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from ldpstream.agents.state.cell_encoding import (
    VERSION_BYTE,
    decode_chunk,
    decode_final,
    decode_late,
    decode_totals,
    encode_chunk,
    encode_final,
    encode_late,
    encode_totals,
)
from ldpstream.agents.state.cell_kinds import KINDS
from ldpstream.agents.state.disclosure_groups import (
    decode_part,
    decode_release,
    encode_part,
    encode_release,
)
from ldpstream.agents.state.encoding import (
    decode_head,
    decode_key,
    encode_head,
    encode_key,
    state_prefix,
)
from ldpstream.agents.state.records import HEAD, Head, Key, Name, RecordError
from ldpstream.agents.state.replica import Replica
from ldpstream.agents.state.reserves import decode_reserve
from ldpstream.agents.state.tokens import decode_tokens, encode_tokens
from ldpstream.agents.state.view import totals
from ldpstream.agents.state.windows import NEVER, Gap, WindowSpec
from tests.stream.harness import make_context, make_spec

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "state.json").read_text())
CONTEXT = make_context(
    WindowSpec(size_ms=8, hop_ms=4, retention_ms=50), spec=make_spec(size=20), chunk=16
)
PREFIX = state_prefix(CONTEXT)
RECORDS = [*VECTORS["log"], *VECTORS["others"], *VECTORS["records"]]


def log_of(records: list[dict[str, Any]]) -> list[tuple[int, bytes, bytes]]:
    return [
        (at, bytes.fromhex(record["key"]), bytes.fromhex(record["value"]))
        for at, record in enumerate(records)
    ]


LOG = log_of(VECTORS["log"])


def same_key(record: dict[str, Any]) -> Key:
    data = bytes.fromhex(record["key"])
    key = decode_key(PREFIX, data)
    assert key is not None
    name, epoch, seq = record["is"]
    assert key == Key(Name(*name), epoch, seq)
    assert encode_key(PREFIX, key) == data
    return key


def read_and_written(name: Name, data: bytes, says: Any) -> tuple[object, bytes]:
    """Return what a cell says, in the form of the vectors, and its bytes when that is written."""
    match name.kind:
        case "count" | "open":
            counts = decode_chunk(data, len(says))
            return counts.tolist(), encode_chunk(counts)
        case "part":
            return list(decode_part(data)), encode_part(*decode_part(data))
        case "release":
            release = decode_release(data)
            counted = {str(partition): n for partition, n in release.counted.items()}
            left_out = [[*of, n] for of, n in release.left_out.items()]
            told = [release.n, release.sum, counted, *([left_out] if left_out else [])]
            return told, encode_release(release)
        case "token":
            tokens = decode_tokens(data)
            return [int(one).to_bytes(8, "little").hex() for one in tokens], encode_tokens(tokens)
        case "reserve":
            rows = decode_reserve(CONTEXT.spec.mechanism, {name.chunk: data})
            return rows.tolist(), VERSION_BYTE + rows.tobytes()
        case "late":
            return decode_late(data), encode_late(decode_late(data))
        case "n":
            return list(decode_totals(data)), encode_totals(decode_totals(data))
    with pytest.raises(RecordError, match="version 2"):
        decode_final(b"\2" + data[1:])
    return decode_final(data).decode(), encode_final(decode_final(data))


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: str(record["is"]))
def test_a_record_is_read_and_written(record: dict[str, Any]):
    key, data, says = same_key(record), bytes.fromhex(record["value"]), record["says"]
    if key.name != HEAD:
        assert read_and_written(key.name, data, says) == (says, data)
        return
    head = decode_head(key, data)
    lineage = {int(epoch): seq for epoch, seq in says["lineage"].items()}
    told = {**says, "lineage": lineage, "source": bytes.fromhex(says["source"])}
    told["gaps"] = tuple(Gap(*gap) for gap in says.get("gaps", ()))
    assert asdict(head) == asdict(Head(**told))
    assert encode_head(head) == data


def test_the_vectors_hold_every_kind_of_record():
    assert {record["is"][0][0] for record in RECORDS} == {"head", *KINDS}
    codes = {bytes.fromhex(r["value"])[1] for r in RECORDS if r["is"][0][0] == "count"}
    assert {0x10, 0} <= codes


def test_the_partitions_gather_and_hand_over_panes():
    first, second = (
        [record["says"] for record in VECTORS[log] if record["is"][0][0] == "head"][-1]
        for log in ("log", "others")
    )
    assert first["gathered"] == second["gathered"] > NEVER


def test_the_log_gives_the_same_state():
    replica = Replica(CONTEXT, 0)
    replica.read(LOG, position=len(LOG), end=len(LOG))
    assert shown(replica) == VECTORS["shown"]


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("where", ["key", "value"])
def test_another_version_is_refused_by_name(where: str, version: int):
    other = bytes((version,))
    heads = [at for at, record in enumerate(VECTORS["log"]) if record["is"][0][0] == "head"]
    for at, (offset, key, value) in enumerate(LOG):
        kind = VECTORS["log"][at]["is"][0][0]
        if where == "value" and (kind == "final" or at in heads[:-1]):
            continue  # A replica does not decode it: finals are decoded when they are asked for.
        damaged = (other + key[1:], value) if where == "key" else (key, other + value[1:])
        log = [*LOG[:at], (offset, *damaged), *LOG[at + 1 :]]
        said = f"version {version}: this release reads version 1; run the release that wrote it"
        with pytest.raises(RecordError, match=said):
            Replica(CONTEXT, 0).read(log, position=len(LOG), end=len(LOG))


def shown(replica: Replica) -> dict[str, Any]:
    """Return what a reader of both partitions sees, in the form of the vectors."""
    log, second = log_of(VECTORS["others"]), Replica(CONTEXT, 1)
    second.read(log, position=len(log), end=len(log))
    span = totals(CONTEXT, [replica, second], 0, 100 * CONTEXT.window.pane_ms)
    return {
        "seq": replica.head.seq,
        "next": replica.head.next,
        "n": span.n,
        "late": span.late,
        "statistic": span.statistic.tolist(),
        "cells": sorted([list(name) for name in replica.cells]),
        "dead": len(replica.dead()),
    }
