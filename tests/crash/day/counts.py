"""What the workers counted and published, against what was sent."""

import copy
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.state.view import totals
from ldpstream.mechanisms.base.times import parse_time
from tests.crash.day.devices import Sent
from tests.crash.day.setting import GRACE_SECONDS, IDLE_SECONDS, SLACK_SECONDS, Span
from tests.lab import Lab
from tests.replicas import read_replicas

ALLOWED_SECONDS = GRACE_SECONDS + IDLE_SECONDS + SLACK_SECONDS


@dataclass(frozen=True)
class State:
    """One state of a collection: a spec and a window size, with the times of its life.

    It counts from `since` on (what came before, too), and windows that would be final only after
    `until` are another state's.
    """

    config: CollectionConfig
    since: float = 0.0
    until: float = float("inf")

    @property
    def title(self) -> str:
        one = self.config
        return f"{one.name} {one.spec.fingerprint.hex()[:6]} {one.window.size_ms // 1000} s"


Key = tuple[str, str, int, int]
"""Collection, fingerprint, start and end (ms) of a window."""
Finals = dict[Key, tuple[float, int]]
"""When each final came first, and its n."""


async def published(lab: Lab, names: Iterable[str]) -> Finals:
    """Return the finals in the estimates topics of collections."""
    found: Finals = {}
    for name in names:
        for record in await lab.records(lab.config.collections[name].topics.estimates):
            document = json.loads(record.value or b"")
            if document["final"]:
                window = document["window"]
                start_ms, end_ms = parse_time(window["start"]), parse_time(window["end"])
                key = name, document["fingerprint"], start_ms, end_ms
                found.setdefault(key, (record.timestamp / 1000, document["n"]))
    return found


async def check_counts(
    lab: Lab, states: Sequence[State], sent: Sent, *, late_allowed: bool = False
) -> tuple[list[str], dict[str, tuple[int, int, int]], int]:
    """Compare the changelog of one collection with what was sent.

    Returns what differs, reports sent, counted and late by state, and how many messages these
    states have rejected, each of which one of them decides.
    """
    problems, rows, rejected = list[str](), dict[str, tuple[int, int, int]](), 0
    for state in states:
        one = copy.copy(lab)
        one.collection = state.config
        async with one.reader() as reader:
            replicas = await read_replicas(reader, state.config, one.context)
        heads = [replica.head for replica in replicas if replica.head is not None]
        n, late = sum(head.n for head in heads), sum(head.late for head in heads)
        rejected += sum(sum(head.rejected.values()) for head in heads)
        due = sent.n(state.config.spec.fingerprint)
        rows[state.title] = due, n, late
        if n + late != due or (late and not late_allowed):
            problems.append(f"{state.title}: {due} sent, {n} counted, {late} late")
        size_ms = state.config.window.size_ms
        windows = sent.by_window(state.config.spec.fingerprint, size_ms)
        for start, reports in sorted(windows.items()):
            found = totals(one.context, replicas, start, start + size_ms)
            if found.n + found.late != reports:
                problems.append(
                    f"{state.title}: window {start}: {reports} sent, {found.n} counted, "
                    f"{found.late} late"
                )
    return problems, rows, rejected


def check_finals(
    states: Sequence[State],
    sent: Mapping[str, Sent],
    finals: Finals,
    halts: Sequence[Span],
    *,
    ended: float,
    patience_seconds: float = 0.0,
) -> tuple[list[str], dict[str, tuple[int, float, float]]]:
    """Compare when finals came with when they were due, and n where all windows are disclosed.

    On a busy machine, they may come `patience_seconds` later.

    Returns what differs, and by state the number of finals and the longest time after a window's
    end, first without halts, then with them.
    """
    problems, rows = list[str](), dict[str, tuple[int, float, float]]()
    for state in states:
        config, size_ms = state.config, state.config.window.size_ms
        print_, worst, longest, came = config.spec.fingerprint, 0.0, 0.0, 0
        own = [one for one in halts if config.name in one.names]
        for start, n in sorted(sent[config.name].by_window(print_, size_ms).items()):
            end = (start + size_ms) / 1000
            due = due_seconds(max(end, state.since), own)
            final = finals.get((config.name, print_.hex(), start, start + size_ms))
            if final is None:
                if due < min(ended, state.until):
                    problems.append(f"{state.title}: window {start}: no final")
                continue
            came, worst = came + 1, max(worst, final[0] - due + ALLOWED_SECONDS)
            longest = max(longest, final[0] - max(end, state.since))
            if final[0] > due + patience_seconds:
                problems.append(f"{state.title}: window {start}: {final[0] - due:.1f} s overdue")
            if config.minimum <= 1 and final[1] != n:
                problems.append(f"{state.title}: window {start}: {n} sent, final with {final[1]}")
        rows[state.title] = came, worst, longest
    return problems, rows


def due_seconds(end: float, halts: Sequence[Span]) -> float:
    """Return until when the final of a window has to come; time stands still during halts."""
    due = end + ALLOWED_SECONDS
    for halt in sorted(halts, key=lambda one: one.begin):
        if halt.begin < due and halt.end > end:
            due += halt.end - max(halt.begin, end)
    return due
