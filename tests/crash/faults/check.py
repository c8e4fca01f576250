"""After a run: counts and finals equal what the source topics hold, exactly."""

import asyncio
import json
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.document.build import build_document, final_content
from ldpstream.agents.state.context import Context, WindowTotals
from ldpstream.agents.state.records import Head
from ldpstream.agents.state.view import totals
from ldpstream.mechanisms.base.times import parse_time
from tests.crash.faults.devices import Device, Devices
from tests.crash.faults.recount import Truth, recount
from tests.lab import Lab
from tests.replicas import read_replicas

FINALS_SECONDS = 180.0
Finals = dict[int, list[dict[str, Any]]]


@dataclass
class Checked:
    """The figures of one collection; `wrong` has one sentence for every difference."""

    messages: int = 0
    acknowledged: int = 0
    counted: int = 0
    late: int = 0
    rejected: int = 0
    windows: int = 0
    published: int = 0
    """Final documents; more than windows where a takeover published again."""
    wrong: list[str] = field(default_factory=list)


async def close_and_check(lab: Lab, devices: Devices) -> dict[str, Checked]:
    """Close all windows of all collections, and compare each with the truth."""
    found: dict[str, Checked] = {}
    future_ms = time.time_ns() // 1_000_000 + 3_600_000
    truths: dict[str, Truth] = {}
    for name, config in lab.config.collections.items():
        records = await lab.records(config.topics.source, committed_only=True)
        truth = await asyncio.to_thread(recount, config, records, future_ms=future_ms)
        truths[name] = truth
        await lab.close(max(truth.panes) + config.window.size_ms, collection=config)
    for device in devices.all:
        config, truth = lab.config.collections[device.name], truths[device.name]
        found[device.name] = await _check(lab, config, truth, device)
    return found


async def _check(lab: Lab, config: CollectionConfig, truth: Truth, device: Device) -> Checked:
    windows = truth.windows(config)
    finals = await _finals(lab, config, len(windows))
    context = Context(spec=config.spec, window=config.window, make_final=final_content(config))
    async with lab.reader() as reader:
        replicas = await read_replicas(reader, config, context)
    heads = [replica.head or Head() for replica in replicas]
    checked = Checked(
        messages=truth.messages,
        counted=truth.n,
        late=sum(truth.late.values()),
        rejected=sum(truth.rejected.values()),
        windows=len(windows),
        published=sum(map(len, finals.values())),
    )
    if truth.ambiguous:
        checked.wrong.append(f"{truth.ambiguous} reports could be late or not: no proof")
    checked.acknowledged, lost = _journal(device, truth)
    checked.wrong += lost
    checked.wrong += compare_heads(truth, heads)
    for start, statistic in windows.items():
        got = totals(context, replicas, start, start + config.window.size_ms)
        if not np.array_equal(got.statistic, statistic):
            checked.wrong.append(
                f"window {start}: {got.n} reports in the state, {_n(config, statistic)} sent"
            )
    checked.wrong += compare_documents(config, truth, windows, finals)
    checked.wrong += await _copies(lab, config, truth)
    return checked


async def _finals(lab: Lab, config: CollectionConfig, wanted: int) -> Finals:
    """Return all finals by start of the window, once there are enough or time is up."""
    deadline = time.monotonic() + FINALS_SECONDS
    while True:
        found: Finals = {}
        for record in await lab.records(config.topics.estimates):
            document = json.loads(record.value or b"")
            if document["final"]:
                found.setdefault(parse_time(document["window"]["start"]), []).append(document)
        if len(found) >= wanted or time.monotonic() > deadline:
            return found
        await asyncio.sleep(0.5)


def _journal(device: Device, truth: Truth) -> tuple[int, list[str]]:
    """What was acknowledged is in the topic; what was aborted is in no committed record."""
    entries, wrong = device.journal.read(), []
    for entry in entries:
        at = int(entry["partition"]), int(entry["offset"])
        if not entry["aborted"] and truth.values.get(at) != int(entry["crc"]):
            wrong.append(f"offset {at} was acknowledged and holds another message, or none")
        if entry["aborted"] and at in truth.values:
            wrong.append(f"offset {at} was aborted and reads as committed")
    return int((entries["aborted"] == 0).sum()), wrong


def compare_heads(truth: Truth, heads: list[Head]) -> list[str]:
    rejected: Counter[str] = Counter()
    for head in heads:
        rejected.update(head.rejected)
    pairs = {
        "counted": (sum(head.n for head in heads), truth.n),
        "late": (sum(head.late for head in heads), sum(truth.late.values())),
        "lost": (sum(head.lost for head in heads), 0),
        "rejected": (+rejected, +truth.rejected),
    }
    return [
        f"{what}: {got} in the heads, {sent} sent"
        for what, (got, sent) in pairs.items()
        if got != sent
    ]


def compare_documents(
    config: CollectionConfig,
    truth: Truth,
    windows: dict[int, NDArray[np.int64]],
    finals: Finals,
) -> list[str]:
    """Every window has one final content, which is built from the truth."""
    wrong = [f"window {start} has no final" for start in windows.keys() - finals.keys()]
    wrong += [f"window {start} is final and empty" for start in finals.keys() - windows.keys()]
    size_ms = config.window.size_ms
    for start in windows.keys() & finals.keys():
        first, *others = finals[start]
        if any(other != first for other in others):
            wrong.append(f"window {start} was published with different contents")
        statistic = windows[start]
        given = WindowTotals(
            start,
            start + size_ms,
            statistic,
            _n(config, statistic),
            first["late"],
            first["rejected"],
        )
        right = build_document(config, given, window=(start, start + size_ms), final=True)
        if json.loads(right.to_json()) != first:
            wrong.append(f"window {start}: final of {first['n']} reports, {given.n} sent")
        late = sum(n for pane, n in truth.late.items() if start <= pane < start + size_ms)
        if not 0 <= first["late"] <= late:
            wrong.append(f"window {start}: {first['late']} late in its final, {late} in all")
    return wrong


def _n(config: CollectionConfig, statistic: NDArray[np.int64]) -> int:
    return config.spec.mechanism.count(statistic)


async def _copies(lab: Lab, config: CollectionConfig, truth: Truth) -> list[str]:
    """Every late or rejected message has a copy, and no other message has."""
    wrong = []
    rejected = truth.rejected_at if config.rejected == "copy" else set()
    for topic, wanted in (
        (config.topics.late, truth.late_at),
        (config.topics.rejected, rejected),
    ):
        headers = [dict(record.headers) for record in await lab.records(topic)]
        got = {(int(h["partition"]), int(h["offset"])) for h in headers}
        if got != wanted:
            wrong.append(f"{topic}: {len(wanted - got)} missing, {len(got - wanted)} strange")
    return wrong


async def uncompacted(lab: Lab, *, seconds: float) -> list[str]:
    """Wait until the broker has compacted a part of the first changelog; say if it does not."""
    deadline, changelog = time.monotonic() + seconds, lab.collection.topics.changelog
    while True:
        records = await lab.records(changelog)
        last = {record.partition: record.offset for record in records}
        if len(records) < 0.8 * sum(offset + 1 for offset in last.values()):
            return []
        if time.monotonic() > deadline:
            return [f"{changelog} was never compacted"]
        await asyncio.sleep(0.5)
