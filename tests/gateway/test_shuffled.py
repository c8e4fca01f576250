"""`gateway.shuffle`: what lands in the topic, and what does not."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldpstream.agents.broker.record_time import now_ms
from ldpstream.agents.config import ConfigError, read_config
from ldpstream.agents.edge.gateway_process import check_gateway
from ldpstream.agents.edge.shuffle import Shuffler
from ldpstream.agents.edge.upload_check import UploadRefusedError
from ldpstream.agents.engine.process import HttpUnavailableError
from ldpstream.mechanisms import decode_frame
from ldpstream.mechanisms.wire.frame import Frame
from tests.gateway.serving import TABLES, Broker, Gateway, gateway
from tests.processes import eventually

HOUR_MS = 3_600_000


def upload(running: Gateway, report: int, at_ms: int) -> bytes:
    return running.spec().frame_reports(np.array([report]), times_ms=np.array([at_ms]))


def frames(running: Gateway) -> list[Frame]:
    spec = running.spec()
    return [
        decode_frame(frame, fingerprint=spec.fingerprint, report_bytes=spec.report_bytes)
        for _, frame in running.broker.frames
    ]


def this_hour() -> tuple[int, int]:
    """Return the hour's first second, and now."""
    now = now_ms()
    return now - now % HOUR_MS, now


async def test_reports_are_sent_together_sorted_and_with_one_time(tmp_path: Path):
    start, now = this_hour()
    reports, times = [2, 0, 1, 1, 0, 2], [now, start, now, start, now, start]
    async with gateway(tmp_path, shuffle=3) as running:
        posts: list[asyncio.Task[Any]] = []
        for report, at_ms in zip(reports, times, strict=True):
            await eventually(lambda: running.served.uploads.waiting == len(posts))
            assert running.broker.frames == []
            posts.append(asyncio.create_task(running.post(upload(running, report, at_ms))))
        answers = await asyncio.gather(*posts[:3])
        assert answers == [(200, {"accepted": 1})] * 3
        assert not any(post.done() for post in posts[3:])
        await running.served.uploads.drain()
        assert await asyncio.gather(*posts[3:]) == [(200, {"accepted": 1})] * 3
        found = frames(running)
    for frame, sent in zip(found, (reports[:3], reports[3:]), strict=True):
        assert frame.payload[:, 0].tolist() == sorted(sent)
        assert frame.counts.tolist() == [3]
        (time_ms,) = frame.times_ms.tolist()
        assert now - 1_000 <= time_ms <= min(now_ms(), start + HOUR_MS - 1_000)


async def test_too_few_reports_do_not_reach_the_topic(tmp_path: Path):
    _, now = this_hour()
    async with gateway(tmp_path, shuffle=3) as running:
        posts = [asyncio.create_task(running.post(upload(running, 1, now))) for _ in range(2)]
        await eventually(lambda: running.served.uploads.waiting == 2)
        await running.served.uploads.drain()
        assert [status for status, _ in await asyncio.gather(*posts)] == [503, 503]
        assert running.broker.frames == []


async def test_a_repeated_upload_does_not_count_towards_a_batch(tmp_path: Path):
    _, now = this_hour()
    async with gateway(tmp_path, shuffle=2) as running:
        body = upload(running, 1, now)
        posts = [asyncio.create_task(running.post(body, "ab" * 16)) for _ in range(9)]
        await eventually(lambda: running.served.uploads.waiting == 1)
        await asyncio.sleep(0.05)
        assert running.broker.frames == []
        others = [asyncio.create_task(running.post(body)) for _ in range(3)]
        assert {status for status, _ in await asyncio.gather(*posts)} == {200}
        await running.served.uploads.drain()
        assert {status for status, _ in await asyncio.gather(*others)} == {200}
        assert [frame.counts.tolist() for frame in frames(running)] == [[2], [2]]


async def test_what_the_broker_refuses_may_be_repeated(tmp_path: Path):
    _, now = this_hour()
    broker = Broker()
    broker.failing = 1
    async with gateway(tmp_path, broker, shuffle=2) as running:
        bodies = [upload(running, report, now) for report in (0, 1, 2, 0)]
        keys = [f"{number:032x}" for number in range(4)]
        posts = [
            asyncio.create_task(running.post(body, key))
            for body, key in zip(bodies, keys, strict=True)
        ]
        await eventually(lambda: sum(post.done() for post in posts) == 2)
        refused = [number for number, post in enumerate(posts) if post.done()]
        assert [posts[number].result()[0] for number in refused] == [503, 503]
        again = [
            asyncio.create_task(running.post(bodies[number], keys[number])) for number in refused
        ]
        await eventually(lambda: running.broker.reports(running.spec()) == 2)
        await running.served.uploads.drain()
        answers = await asyncio.gather(*again, *(p for p in posts if not p.done()))
        assert {status for status, _ in answers} == {200}
        assert running.broker.reports(running.spec()) == 4


@pytest.mark.parametrize(
    ("away_ms", "number", "result"),
    [(-2 * HOUR_MS, 1, "time"), (2 * HOUR_MS, 1, "time"), (0, 2, "several")],
)
async def test_uploads_of_several_reports_or_outside_open_windows_are_refused(
    tmp_path: Path, away_ms: int, number: int, result: str
):
    _, now = this_hour()
    async with gateway(tmp_path, shuffle=2) as running:
        status, said = await running.post(running.frame(number, at_ms=now + away_ms))
        assert status == 400
        assert ("open window" in said["detail"]) == (result == "time")
        assert running.served.uploads.waiting == 0


async def test_a_pane_with_too_few_reports_is_dropped_before_it_closes(tmp_path: Path):
    tables = {"collection": TABLES["collection"]}
    config = read_config(tables, base=tmp_path, environment={}).collections["modes"]
    broker = Broker()
    # A pane ends, and half its grace is nearly over.
    clock = [HOUR_MS + config.window.grace_ms // 2 - 20]
    shuffler = Shuffler(config, broker.sender(config.spec), least=2, clock_ms=lambda: clock[0])

    def put(at_ms: int) -> "asyncio.Future[None]":
        return shuffler.put(np.array([1]), times_ms=np.array([at_ms]))

    alone, others = put(0), [put(HOUR_MS) for _ in range(4)]
    with pytest.raises(UploadRefusedError, match="fewer than 2 reports") as caught:
        await alone
    assert (caught.value.status, caught.value.result) == (410, "alone")
    await asyncio.gather(*others[:2])
    assert len(broker.frames) == 1
    clock[0] += 20
    with pytest.raises(UploadRefusedError, match="an open window"):
        put(0)
    shuffler.flush()
    await asyncio.gather(*others[2:])
    assert broker.reports(config.spec) == 4


ONE_REPORT = {**TABLES["collection"]["modes"], "one_report": True}


@pytest.mark.parametrize(
    ("collection", "shuffle", "refusal"),
    [
        (ONE_REPORT, 2, "gateway.shuffle: expected 0, got 2: reports of modes contain"),
        (
            {**TABLES["collection"]["modes"], "mechanism": "l1-bits", "domain": {"size": 1_000}},
            4_000,
            "gateway.shuffle: expected at most 1999, got 4000",
        ),
    ],
)
def test_collections_that_cannot_be_shuffled(
    tmp_path: Path, collection: dict[str, Any], shuffle: int, refusal: str
):
    tables = {"collection": {"modes": collection}, "gateway": {"shuffle": shuffle}}
    config = read_config(tables, base=tmp_path, environment={})
    with pytest.raises(HttpUnavailableError, match=refusal):
        check_gateway(config)


def test_a_queue_holds_two_batches(tmp_path: Path):
    tables = {"collection": TABLES["collection"], "gateway": {"shuffle": 10, "queue": 19}}
    with pytest.raises(ConfigError, match=r"gateway.queue: expected at least twice shuffle"):
        read_config(tables, base=tmp_path, environment={})
