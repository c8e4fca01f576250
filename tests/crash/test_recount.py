"""The recount of a topic, on messages decided by hand; and that the comparison notices a report."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from ldpstream.agents.config import CollectionConfig, load_config
from ldpstream.agents.document.build import build_document
from ldpstream.agents.state.context import WindowTotals
from ldpstream.agents.state.records import Head
from ldpstream.mechanisms.wire.frame import encode_frame
from tests.crash.faults.check import compare_documents, compare_heads
from tests.crash.faults.recount import Truth, recount

CONFIG = """[kafka]
bootstrap = "127.0.0.1:1"
[collection.rides]
mechanism = "randomized-response"
epsilon = 1.0
domain = { size = 4 }
precision = "1s"
minimum = 1
partitions = 2
window = { size = "20s", hop = "10s", grace = "5s", idle = "off", future = "5s" }
"""
FAR_MS = 10**12


def rides(folder: Path) -> CollectionConfig:
    (folder / "rides.toml").write_text(CONFIG)
    return load_config(folder / "rides.toml", environment={}).collections["rides"]


def record(offset: int, value: bytes | None, partition: int = 0) -> Any:
    return SimpleNamespace(partition=partition, offset=offset, value=value, timestamp=0)


def frame(config: CollectionConfig, reports: list[int], times_ms: list[int]) -> bytes:
    payload = np.array(reports, dtype=np.uint8)[:, None]
    return encode_frame(config.spec.fingerprint, np.array(times_ms), payload)


def counted(config: CollectionConfig) -> Truth:
    values = [
        frame(config, [0, 1, 1], [1_000, 2_000, 24_000]),
        # A watermark of 24 s leaves the pane until 20 s open: its grace ends at 25 s.
        frame(config, [2], [3_000]),
        frame(config, [3, 3, 3, 200], [26_000, 9_000, 16_000, 16_000]),
        frame(config, [0], [5_000]),
        frame(config, [0], [26_500]),
        frame(config, [0], [FAR_MS]),
        b"none",
        None,
        encode_frame(b"stranger", np.array([26_000]), np.zeros((1, 1), dtype=np.uint8)),
        frame(config, [1], [26_000])[:-1],
        frame(config, [2], [27_000]),
    ]
    records = [record(offset, value) for offset, value in enumerate(values)]
    records.append(record(0, frame(config, [1], [4_000]), partition=1))
    return recount(config, records, future_ms=FAR_MS)


def test_the_recount_decides_the_fate_of_every_report(tmp_path: Path) -> None:
    config = rides(tmp_path)
    truth = counted(config)
    # The third frame's run of 9 s is decided first: late, as its pane closed at 15 s.
    assert truth.late == {0: 3}
    assert truth.late_at == {(0, 1), (0, 2), (0, 3)}
    assert truth.rejected == {
        "range": 1,
        "precision": 1,
        "future": 1,
        "undecodable": 3,
        "fingerprint": 1,
    }
    assert truth.rejected_at == {(0, offset) for offset in (2, 4, 5, 6, 7, 8, 9)}
    assert {start: list(s) for start, s in truth.windows(config).items()} == {
        -10_000: [1, 2, 0, 0],
        0: [1, 2, 0, 1],
        10_000: [0, 1, 1, 2],
        20_000: [0, 1, 1, 1],
    }
    assert truth.n == 7
    assert truth.ambiguous == 0


def test_the_comparison_notices_one_report(tmp_path: Path) -> None:
    config = rides(tmp_path)
    truth = counted(config)
    windows = truth.windows(config)

    def final(start: int, more: int = 0) -> dict[str, Any]:
        statistic = windows[start].copy()
        statistic[0] += more
        totals = WindowTotals(start, start + 20_000, statistic, int(statistic.sum()), 0, 7)
        document = build_document(config, totals, window=(start, start + 20_000), final=True)
        found: dict[str, Any] = json.loads(document.to_json())
        return found

    right = {start: [final(start)] for start in windows}
    assert compare_documents(config, truth, windows, right) == []
    one_more = {**right, 0: [final(0, more=1)]}
    assert compare_documents(config, truth, windows, one_more) != []
    two_contents = {**right, 0: [final(0), final(0, more=1)]}
    assert compare_documents(config, truth, windows, two_contents) != []
    assert compare_documents(config, truth, windows, dict(list(right.items())[1:])) != []
    head = Head(n=7, late=3, rejected=dict(truth.rejected))
    assert compare_heads(truth, [head]) == []
    for other in (replace(head, n=8), replace(head, late=2), replace(head, lost=1)):
        assert compare_heads(truth, [other]) != []
