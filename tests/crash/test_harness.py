"""What runs with faults rest on: the recount of a topic, its comparison, and devices that end."""

import asyncio
import json
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from benchmarks.resilience.progress import total_seconds, waits

from ldpstream.agents.config import CollectionConfig, load_config
from ldpstream.agents.document.build import build_document
from ldpstream.agents.state.context import WindowTotals
from ldpstream.agents.state.records import Head
from ldpstream.mechanisms.wire.frame import encode_frame
from tests.crash.faults import devices
from tests.crash.faults.check import compare_documents, compare_heads
from tests.crash.faults.device import Order
from tests.crash.faults.devices import Devices
from tests.crash.faults.recount import Truth, recount
from tests.processes import PATIENCE_SECONDS

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


def one(folder: Path, monkeypatch: pytest.MonkeyPatch, *command: str) -> Devices:
    """Return the device of one collection, which runs another command."""
    monkeypatch.setattr(Order, "command", lambda _: command)
    monkeypatch.setattr(devices, "RESTART_SECONDS", 0.0)
    lab = SimpleNamespace(config=SimpleNamespace(collections={"trips": None}), file="")
    return Devices(lab, folder, reports=1_000, seed=1, transactions=False)


@pytest.mark.crash
async def test_a_device_that_is_killed_while_it_ends_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill may learn the exit code first; the task that waits has to learn the same."""
    running = one(tmp_path, monkeypatch, "sleep", "60")
    (device,), before = running.all, None
    running.send(share=1.0, seconds=1.0)
    async with asyncio.timeout(PATIENCE_SECONDS):
        for _ in range(40):
            while device.process is before:
                assert not running._tasks[0].done(), running._tasks[0].exception()
                await asyncio.sleep(0.001)
            before, until = device.process, time.monotonic() + 0.005
            while time.monotonic() < until:
                running.kill(device)
    await running.stop()
    assert running.restarts >= 39


@pytest.mark.crash
async def test_a_device_that_ends_by_itself_is_named_with_its_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = one(tmp_path, monkeypatch, "sh", "-c", "exit 5")
    running.send(share=1.0, seconds=1.0)
    with pytest.raises(RuntimeError, match="the device of trips ended with 5"):
        await running.finish()


def test_a_wait_begins_with_a_message_and_ends_with_the_head_that_counts_it() -> None:
    arrived = {0: [10.0, 11.0, 12.0], 1: [10.5]}
    heads = {0: [(1, 10.25), (2, 15.0), (3, 15.5)], 1: [(1, 20.5)]}
    # The second head comes 4 s after its message; the third message waits since the second head.
    assert waits(heads, arrived) == [(10.0, 10.25), (11.0, 15.0), (15.0, 15.5), (10.5, 20.5)]
    assert total_seconds(waits(heads, arrived)) == 10.25


def test_spans_that_overlap_count_once() -> None:
    assert total_seconds([(3.0, 4.0), (1.0, 2.5), (2.0, 2.25), (7.0, 8.0)]) == 3.5
