"""A fuzz through a broker and a worker: what is sent, its expected outcome, and what is found."""

import random
import time
import urllib.request
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from prometheus_client.parser import text_string_to_metric_families

from tests.fuzz.collection import fuzzer_of, rules_of
from tests.fuzz.expected import Expected
from tests.lab import Lab
from tests.processes import PATIENCE_SECONDS, Worker, eventually

HOUR_MS = 3_600_000
WINDOW = 'grace = "2h", idle = "off"'
"""Keeps reports of an hour ago on time, whatever times others claim: those ahead are refused."""
OUTCOMES = (
    *("counted", "late"),
    *("undecodable", "fingerprint", "range", "future", "precision", "time"),
)
Place = tuple[int, int]
"""Partition and offset of a message."""


@dataclass
class Fuzzed:
    """The expected outcome of the messages sent, by partition and by place."""

    expected: list[Expected]
    sent: int = 0
    reasons: dict[Place, set[str]] = field(default_factory=dict)

    @property
    def outcomes(self) -> Counter[str]:
        return sum((partition.outcomes for partition in self.expected), Counter())


def nothing_sent(lab: Lab) -> Fuzzed:
    """Begin a fuzz of a collection."""
    rules = rules_of(lab.collection.spec, lab.collection.window)
    return Fuzzed([Expected(rules) for _ in range(lab.collection.partitions)])


async def send_fuzz(lab: Lab, fuzzed: Fuzzed, messages: int, *, seed: int, big: int = 1) -> None:
    """Send this many messages, `big` of them large, over all partitions in turn."""
    spec, source = lab.collection.spec, lab.collection.topics.source
    partitions = lab.collection.partitions
    now_ms = time.time_ns() // 1_000_000
    fuzzer = fuzzer_of(spec, random.Random(seed), now_ms=now_ms - HOUR_MS)
    async with lab.producer(linger_ms=5) as producer:
        for value in fuzzer.messages(messages, big=big):
            offset, at = divmod(fuzzed.sent, partitions)
            fuzzed.sent += 1
            await producer.send(source, value, partition=at, key=b"k")
            outcomes = fuzzed.expected[at].message(value, now_ms)
            reasons = {
                outcome for outcome, count in outcomes.items() if count and outcome != "counted"
            }
            if reasons:
                fuzzed.reasons[at, offset] = reasons
        await producer.flush()


def metric_outcomes(worker: Worker) -> Counter[str]:
    """Return the reports by outcome as `/metrics` has them."""
    with urllib.request.urlopen(f"{worker.url}/metrics", timeout=PATIENCE_SECONDS) as answer:
        families = text_string_to_metric_families(answer.read().decode())
    found: Counter[str] = Counter()
    for sample in (sample for family in families for sample in family.samples):
        if sample.name == "ldpstream_reports_total" and sample.labels["result"] != "rejected":
            found[sample.labels["result"]] += int(sample.value)
        elif sample.name == "ldpstream_rejected_total":
            found[sample.labels["reason"]] += int(sample.value)
    return found


async def check_fuzz(
    lab: Lab, worker: Worker, fuzzed: Fuzzed, *, seconds: float = PATIENCE_SECONDS
) -> None:
    """Wait until the metrics have every report; compare them, heads, copies and counts."""
    total = sum(fuzzed.outcomes.values())
    await eventually(lambda: metric_outcomes(worker).total() >= total, seconds=seconds)
    assert metric_outcomes(worker) == fuzzed.outcomes
    for head, expected in zip(await lab.heads(), fuzzed.expected, strict=True):
        outcomes = Counter({"counted": head.n, "late": head.late, **head.rejected})
        assert outcomes == expected.outcomes
        assert head.clock == expected.clock
    assert await copied_reasons(lab) == fuzzed.reasons
    await _check_counts(lab, fuzzed)


async def copied_reasons(lab: Lab) -> dict[Place, set[str]]:
    """Return the reasons under which messages were copied, by their place in the source."""
    found: dict[Place, set[str]] = {}
    topics = lab.collection.topics
    for topic in (topics.late, topics.rejected):
        for copy in await lab.records(topic):
            headers = {name: value.decode() for name, value in copy.headers}
            assert (headers["reason"] == "late") == (topic == topics.late)
            place = int(headers["partition"]), int(headers["offset"])
            found.setdefault(place, set()).add(headers["reason"])
    return found


async def _check_counts(lab: Lab, fuzzed: Fuzzed) -> None:
    """The statistic of every window is that of the reports that had to be counted in it.

    Windows that have expired anywhere are left out: extreme times are accepted and soon forgotten.
    """
    mechanism, windows = lab.collection.spec.mechanism, lab.ledger.windows
    expired = max(head.expired for head in await lab.heads())
    for expected in fuzzed.expected:
        for (pane, report), times in expected.counted.items():
            if pane >= expired:
                row = np.frombuffer(report, dtype=np.uint8)[None]
                statistic = windows.setdefault(
                    pane * lab.collection.window.pane_ms, mechanism.empty()
                )
                mechanism.accumulate(statistic, np.repeat(mechanism.decode(row)[0], times))
    found = await lab.statistics()
    assert found
    for start, statistic in found.items():
        np.testing.assert_array_equal(statistic, windows[start])
