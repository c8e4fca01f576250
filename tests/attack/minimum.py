"""What `minimum` withholds, recovered by subtracting answers over HTTP and on the topic."""

import asyncio
import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, TopicPartition

from tests.attack.stand import Attack, Outcome, Stand
from tests.processes import PATIENCE_SECONDS, Worker

_MINIMUM: Final = 20
_OF_BLOCK: Final = 10
_PANE_MS: Final = 600_000
_DAY_MS: Final = 1_790_000_400_000
_BLOCKS: Final = [f"{first}..{first + 1}" for first in range(0, 12, 2)]
_RANGES: Final = ", ".join(f'"{name}" = [{", ".join(name.split(".."))}]' for name in _BLOCKS)
_COLLECTION: Final = f"""mechanism = "block-hadamard"
epsilon = 1.0
domain = {{ size = 12, blocks = 2 }}
partitions = 1
precision = "1s"
minimum = {_MINIMUM}
window = {{ size = "30m", hop = "10m", idle = "off" }}
publish = {{ every = "100ms", top = 0, ranges = {{ {_RANGES} }} }}"""

_RECORDS: Final = f"""mechanism = "randomized-response"
epsilon = 1.0
partitions = 1
precision = "1s"
minimum = {_MINIMUM}
window = {{ size = "30m", hop = "10m", idle = "off" }}
publish = {{ every = "100ms" }}
domain.attributes.sex = {{ size = 2, probability = 0.7 }}
domain.attributes.smokes = {{ size = 2, probability = 0.3 }}"""


async def hopping_panes(stand: Stand) -> Outcome:
    """Isolate a pane of one report by the spans around it: each gives its blocks' exact counts."""
    file = stand.configure({"city": _COLLECTION})
    with stand.serving("worker", "-c", str(file)) as worker:
        # Value 7 is that of the one person in the second pane.
        _send(stand, file, [(_DAY_MS, 3)] * 25 + [(_DAY_MS + _PANE_MS, 7)])
        _send(stand, file, [(_DAY_MS + 2 * _PANE_MS, 3)] * 30)
        _send(stand, file, [(_DAY_MS + 9 * _PANE_MS, 3)] * 25)
        _until(worker, 81)
        await _close(stand, file, worker)
        found = list(_spans(worker, panes=10))
        found += await _published(stand, file)
    return _classify(found)


async def provisional_steps(stand: Stand) -> Outcome:
    """Read an open window again and again while single people report."""
    file = stand.configure({"city": _COLLECTION})
    found = []
    with stand.serving("worker", "-c", str(file)) as worker:
        counted = 0
        for more in (40, 1, 25, 1, 30):
            _send(stand, file, [(_DAY_MS, 3)] * more)
            counted += more
            _until(worker, counted)
            await asyncio.sleep(0.4 if stand.short else 1)
            found += _spans(worker, panes=1)
        end = time.monotonic() + PATIENCE_SECONDS
        while all(one["withheld"] or one["final"] for one in found) and time.monotonic() < end:
            await asyncio.sleep(0.1)
            found += _spans(worker, panes=1)
        _send(stand, file, [(_DAY_MS + 9 * _PANE_MS, 3)] * 25)
        await _close(stand, file, worker)
        found += _spans(worker, panes=1)
        found += await _published(stand, file)
    outcome = _classify(found)
    if outcome.held and all(one["withheld"] or one["final"] for one in found):
        return Outcome(False, "no answer about an open window")
    return outcome


async def small_blocks(stand: Stand) -> Outcome:
    """Find a person alone in a disclosed block, in answers and in their differences."""
    file = stand.configure({"city": f"minimum_block = {_OF_BLOCK}\n{_COLLECTION}"})
    with stand.serving("worker", "-c", str(file)) as worker:
        _send(stand, file, [(_DAY_MS, value) for value in [3] * 30 + [9] * 25 + [7]])
        more = [3] * 14 + [5] * 3 + [7] * 12 + [9] * 30
        _send(stand, file, [(_DAY_MS + _PANE_MS, value) for value in more])
        _send(stand, file, [(_DAY_MS + 9 * _PANE_MS, 3)] * 25)
        _until(worker, 140)
        await _close(stand, file, worker)
        found = list(_spans(worker, panes=10))
        found += await _published(stand, file)
    return _judge_blocks([one for one in found if not one["withheld"]])


async def attributes(stand: Stand) -> Outcome:
    """Ask about the attribute that few reports are about, in every span and as a window grows."""
    file = stand.configure({"city": _RECORDS})
    found: list[Mapping[str, Any]] = []
    with stand.serving("worker", "-c", str(file)) as worker:
        counted = 0
        for pane, n in enumerate((61, 45, 200)):
            lines = f"{_DAY_MS + pane * _PANE_MS},1,0\n" * n
            ran = stand.run(
                *("send", "city", "--times", "-c", str(file)),
                stdin=f"time,sex,smokes\n{lines}".encode(),
            )
            assert ran.returncode == 0, ran.stderr.decode()
            counted += n
            _until(worker, counted)
            await asyncio.sleep(0.4 if stand.short else 1)
            found += _attributes(worker)
        await _close(stand, file, worker)
        found += _attributes(worker)
        for one in await _published(stand, file):
            found += one.get("attributes", [])
    answers = {
        (one["attribute"], *_span(one), one["final"], one["n"])
        for one in found
        if not one["withheld"]
    }
    # As in `_classify`: nested final spans, and an open span as it grows.
    counts = {(name, n) for name, *_, n in answers} | {
        (more[0], more[4] - less[4])
        for more in answers
        for less in answers
        if more[0] == less[0]
        and (
            more[1:3] == less[1:3]
            or (more[3] and less[3] and more[1] <= less[1] and less[2] <= more[2])
        )
    }
    small = [f"{n} about {name}" for name, n in counts if 0 < n < _MINIMUM]
    if small or not answers:
        return Outcome(False, f"{small[0]} isolated" if small else "no answer")
    return Outcome(True, f"{len(answers)} answers, no difference below {_MINIMUM} reports")


def _attributes(worker: Worker) -> Iterator[Mapping[str, Any]]:
    for name in ("sex", "smokes"):
        for first in range(3):
            for last in range(first + 1, 4):
                start, end = (_time(_DAY_MS + pane * _PANE_MS) for pane in (first, last))
                path = f"/api/collections/city/estimate?attribute={name}&start={start}&end={end}"
                try:
                    yield worker.get(path)
                except urllib.error.HTTPError as error:
                    if error.code >= 500:
                        raise


def _send(stand: Stand, file: Any, reports: Sequence[tuple[int, int]]) -> None:
    lines = "".join(f"{time_ms},{value}\n" for time_ms, value in reports)
    ran = stand.run("send", "city", "--times", "-c", str(file), stdin=lines.encode())
    assert ran.returncode == 0, ran.stderr.decode()


def _time(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _until(worker: Worker, counted: int) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while worker.get("/api/collections/city/status")["counted"] < counted:
        assert time.monotonic() < end
        time.sleep(0.1)


async def _close(stand: Stand, file: Any, worker: Worker) -> None:
    """Close nine panes; wait until their windows are final, and a second for other messages."""
    until = _time(_DAY_MS + 9 * _PANE_MS)
    ran = stand.run("close", "city", "--until", until, "-c", str(file))
    assert ran.returncode == 0, ran.stderr.decode()
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        listed = worker.get("/api/collections/city/windows?all=true")["windows"]
        closed = [one for one in listed if one["window"]["end"][:19] <= until[:19]]
        if closed and all(one["final"] for one in closed):
            break
        await asyncio.sleep(0.1)
    await asyncio.sleep(1)


def _spans(worker: Worker, *, panes: int) -> Iterator[Mapping[str, Any]]:
    """Ask for every span of panes."""
    for first in range(-2, panes):
        for last in range(first + 1, min(first + 5, panes) + 1):
            start, end = (_time(_DAY_MS + pane * _PANE_MS) for pane in (first, last))
            asked = "&".join(f"range={name}" for name in _BLOCKS)
            path = f"/api/collections/city/estimate?top=0&{asked}&start={start}&end={end}"
            try:
                yield worker.get(path)
            except urllib.error.HTTPError as error:
                if error.code >= 500:
                    raise


async def _published(stand: Stand, file: Any) -> list[Mapping[str, Any]]:
    """Read all that is on the estimates topic."""
    topic = next(
        line.split('"')[1] for line in file.read_text().splitlines() if line.startswith("topic")
    )
    consumer = AIOKafkaConsumer(bootstrap_servers=stand.broker.bootstrap, **stand.broker.security)
    partition = TopicPartition(f"{topic}.estimates", 0)
    await consumer.start()
    try:
        consumer.assign([partition])
        end = (await consumer.end_offsets([partition]))[partition]
        await consumer.seek_to_beginning(partition)
        found: list[Mapping[str, Any]] = []
        while await consumer.position(partition) < end:
            records = (await consumer.getmany(timeout_ms=100)).get(partition, [])
            found += [json.loads(one.value) for one in records if one.value]
        return found
    finally:
        await consumer.stop()


def _counts(document: Mapping[str, Any]) -> tuple[int, ...] | None:
    """Return how many reports are from each block of two values, which answers give exactly."""
    if document["withheld"]:
        return None
    counts = {entry["name"]: entry["count"] for entry in document["ranges"]}
    return tuple(round(counts[name]) for name in _BLOCKS)


def _classify(documents: Sequence[Mapping[str, Any]]) -> Outcome:
    """Subtract answers from answers: a difference of 1 to 19 reports isolates them.

    Only answers of which one contains the other are subtracted: nested final spans, and an open
    span as it grows.
    """
    answers = {
        (*_span(document), document["final"], found)
        for document in documents
        if (found := _counts(document)) is not None
    }
    isolated = {
        tuple(a - b for a, b in zip(more[3], less[3], strict=True))
        for more in answers
        for less in answers
        if more[:2] == less[:2]
        or (more[2] and less[2] and more[0] <= less[0] and less[1] <= more[1])
    }
    small = [one for one in isolated if min(one) >= 0 and 0 < sum(one) < _MINIMUM]
    if not small:
        return Outcome(True, f"{len(answers)} answers, no difference below {_MINIMUM} reports")
    least = min(small, key=sum)
    where = [block for block, count in enumerate(least) if count]
    return Outcome(False, f"{sum(least)} of minimum {_MINIMUM} isolated, in block {where[0]}")


def _judge_blocks(documents: Sequence[Mapping[str, Any]]) -> Outcome:
    """Look for a block with few reports: in an answer, in what it leaves out, in a difference."""
    answers: set[tuple[str, str, int, tuple[int | None, ...]]] = set()
    for document in documents:
        counts = {entry["name"]: entry["count"] for entry in document["ranges"]}
        known = [None if counts[name] is None else round(counts[name]) for name in _BLOCKS]
        answers.add((*_span(document), document["n"], tuple(known)))
    for start, end, n, counts in answers:
        rest = n - sum(count for count in counts if count is not None)
        differences = [
            (b - a, name)
            for since, until, _, less in answers
            if start <= since and until <= end
            for name, a, b in zip(_BLOCKS, less, counts, strict=True)
            if a is not None and b is not None
        ]
        of_one = zip(counts, _BLOCKS, strict=True)
        for count, name in [(rest, "the rest"), *of_one, *differences]:
            if count is not None and 0 < count < _OF_BLOCK:
                return Outcome(False, f"{count} of minimum {_OF_BLOCK} isolated, in {name}")
    some = sum(count is not None for *_, counts in answers for count in counts)
    if not some:
        return Outcome(False, "no answer about any block")
    return Outcome(
        True, f"{len(answers)} answers, {some} counts, none of 1 to {_OF_BLOCK - 1} reports"
    )


def _span(document: Mapping[str, Any]) -> tuple[str, str]:
    span = document.get("span") or document["window"]
    return span["start"], span["end"]


ATTACKS = (
    Attack(
        "minimum-by-subtraction",
        "no two answers differ by 1 to minimum - 1 reports",
        hopping_panes,
    ),
    Attack(
        "minimum-by-provisionals",
        "answers about an open window differ by minimum reports or more",
        provisional_steps,
    ),
    Attack(
        "minimum-of-a-block",
        "no answers isolate 1 to minimum_block - 1 reports of a disclosed block",
        small_blocks,
    ),
    Attack(
        "minimum-of-an-attribute",
        "no answers isolate 1 to minimum - 1 reports about an attribute",
        attributes,
    ),
)
