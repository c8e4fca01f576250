"""What a gateway answers, and what the broker then has."""

import asyncio
import json
import random
import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from ldpstream.agents.gateway.app import MEDIA_TYPE
from ldpstream.agents.http.access import Access
from tests.gateway.serving import NOW_MS, TABLES, Broker, gateway
from tests.processes import eventually

KEY = "0123456789abcdef" * 2


async def test_many_small_uploads_share_frames_and_each_counts_once(tmp_path: Path):
    async with gateway(tmp_path, linger="100ms") as running:
        answers = await asyncio.gather(
            *(running.post(running.frame(1 + n % 3)) for n in range(60)),
            *(running.post(running.frame(2, name="ages"), name="ages") for _ in range(10)),
        )
        assert [said for _, said in answers[:3]] == [{"accepted": n} for n in (1, 2, 3)]
        assert all(status == 200 for status, _ in answers)
        assert running.broker.reports(running.spec()) == 120
        assert running.broker.reports(running.spec("ages")) == 20
        assert len(running.broker.frames) < 35
        async with running.session.get(f"{running.url}/metrics") as answer:
            text = await answer.text()
    counted = {
        tuple(sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name in ("ldpstream_gateway_reports_total", "ldpstream_gateway_uploads_total")
        and sample.value
    }
    assert counted == {
        ("modes",): 120, ("ages",): 20, ("modes", "accepted"): 60, ("ages", "accepted"): 10,
    }  # fmt: skip


async def test_a_repeat_counts_once_at_the_same_time_later_and_after_a_restart(tmp_path: Path):
    broker = Broker()
    async with gateway(tmp_path, broker) as running:
        frame = running.frame(3)
        answers = await asyncio.gather(*(running.post(frame, KEY) for _ in range(20)))
        assert answers == [(200, {"accepted": 3})] * 20
        assert await running.post(frame, KEY) == (200, {"accepted": 3})
        status, said = await running.post(running.frame(4), KEY)
        assert (status, said["detail"]) == (
            409, "expected the bytes that came with this key before",
        )  # fmt: skip
    async with gateway(tmp_path, broker) as running:
        assert await running.post(frame, KEY) == (200, {"accepted": 3})
        assert (await running.post(running.frame(4), KEY))[0] == 409
        assert broker.reports(running.spec()) == 3


async def test_other_bytes_are_refused_while_the_first_are_on_their_way(tmp_path: Path):
    async with gateway(tmp_path) as running:
        running.broker.open.clear()
        first = asyncio.create_task(running.post(running.frame(2), KEY))
        await eventually(lambda: running.served.uploads.waiting == 1)
        assert (await running.post(running.frame(1), KEY))[0] == 409
        running.broker.open.set()
        assert await first == (200, {"accepted": 2})
        assert running.broker.reports(running.spec()) == 2


async def test_what_waits_for_the_broker_is_kept_as_bytes(tmp_path: Path):
    """As numbers a report of one byte would take sixteen more."""
    async with gateway(tmp_path, linger="0s") as running:
        running.broker.open.clear()
        frames = [running.frame(20_000 + i) for i in range(4)]
        tracemalloc.start()
        waiting = [
            asyncio.create_task(running.served.uploads.submit("modes", bytes([i]) * 16, frame))
            for i, frame in enumerate(frames)
        ]
        await eventually(lambda: running.served.uploads.waiting == 4)
        await eventually(lambda: tracemalloc.get_traced_memory()[0] < 2 * sum(map(len, frames)))
        tracemalloc.stop()
        running.broker.open.set()
        assert [one.reports for one in await asyncio.gather(*waiting)] == [
            20_000, 20_001, 20_002, 20_003,
        ]  # fmt: skip


@pytest.mark.parametrize(("limits", "held"), [({"queue": 3}, 3), ({"queue_bytes": 500_000}, 2)])
async def test_a_full_queue_is_said_and_takes_again(
    tmp_path: Path, limits: dict[str, int], held: int
):
    async with gateway(tmp_path, **limits) as running:
        running.broker.open.clear()
        frame = running.frame(200_000)
        waiting = [asyncio.create_task(running.post(frame)) for _ in range(held)]
        await eventually(lambda: running.served.uploads.waiting == held)
        assert (await running.post(frame))[0] == 429
        running.broker.open.set()
        assert [status for status, _ in await asyncio.gather(*waiting)] == [200] * held
        assert (await running.post(frame))[0] == 200
        assert running.broker.reports(running.spec()) == 200_000 * (held + 1)
        assert (running.served.uploads.waiting, running.served.uploads.waiting_bytes) == (0, 0)


async def test_a_broker_that_stays_away_is_503_and_the_repeat_waits_for_the_first(tmp_path: Path):
    async with gateway(tmp_path, patience="100ms") as running:
        running.broker.open.clear()
        frame = running.frame(5)
        assert (await running.post(frame, KEY))[0] == 503
        assert (await running.post(frame, KEY))[0] == 503
        assert running.served.uploads.waiting == 1
        running.broker.open.set()
        assert await running.post(frame, KEY) == (200, {"accepted": 5})
        assert running.broker.reports(running.spec()) == 5
        # One that the producer gave up is none; its repeat begins anew.
        running.broker.failing = 1
        assert (await running.post(frame))[0] == 503
        assert running.served.uploads.waiting == 0
        assert (await running.post(frame))[0] == 200


async def test_what_is_no_upload_is_refused_with_a_reason(tmp_path: Path):
    async with gateway(tmp_path, upload_bytes=1_000) as running:
        good, ages = running.frame(), running.frame(name="ages")
        uncut = good[:12] + (NOW_MS + 1).to_bytes(8, "little") + good[20:]
        cases = [
            (400, "one frame", await running.post(b"")),
            (400, "one frame", await running.post(good + b"\0")),
            (400, "one frame", await running.post(good[:-1])),
            (400, "can produce", await running.post(good[:-1] + b"\x03")),
            (400, "cut to 1000 ms", await running.post(uncut)),
            (400, "since 1970", await running.post(good[:12] + b"\x7f" * 8 + good[20:])),
            (400, "Idempotency-Key", await running.post(good, KEY.upper())),
            (400, "Idempotency-Key", await running.post(good, KEY + "0")),
            (404, "collection", await running.post(good, name="absent")),
            (409, running.spec().fingerprint.hex(), await running.post(ages)),
            (413, "1000 bytes", await running.post(running.frame(1_000))),
            (415, "Content-Type", await running.post(good, Content_Type="text/plain")),
            (415, "Content-Type", await running.post(good, Content_Type=f"{MEDIA_TYPE}; a=b")),
            (415, "Content-Encoding", await running.post(good, Content_Encoding="gzip")),
        ]
        for expected, words, (status, said) in cases:
            assert status == expected, said
            assert words in said["detail"]
        assert running.broker.frames == []
        url = f"{running.url}/v1/collections/modes/reports"
        async with running.session.get(url) as answer:
            assert (answer.status, answer.headers["Allow"]) == (405, "OPTIONS, POST")
            assert (await answer.json(content_type=None))["detail"] == (
                "expected one of OPTIONS, POST"
            )
        async with running.session.get(f"{running.url}/nothing/here") as answer:
            assert answer.status == 404
            assert answer.content_type == "application/problem+json"
            assert "expected a path" in (await answer.json(content_type=None))["detail"]

        async def chunks() -> AsyncIterator[bytes]:
            for _ in range(30):
                yield bytes(100)

        headers = {"Content-Type": MEDIA_TYPE, "Idempotency-Key": KEY}
        async with running.session.post(url, data=chunks(), headers=headers) as answer:
            assert answer.status == 413


async def test_fuzzed_bodies_are_answered_each_with_one_problem(tmp_path: Path):
    rng = random.Random(1)
    async with gateway(tmp_path, linger="0s") as running:
        frames = [running.frame(n, name=name) for n in (1, 2, 9) for name in ("modes", "ages")]
        accepted = {"modes": 0, "ages": 0}
        seen: dict[int, int] = {}
        for number in range(300):
            body = bytearray(rng.choice(frames))
            for _ in range(rng.randint(1, 3)):
                match rng.randrange(4):
                    case 0:
                        body[rng.randrange(len(body))] = rng.randrange(256)
                    case 1:
                        del body[rng.randrange(len(body)) :]
                        body += bytes(1)
                    case 2:
                        body += rng.randbytes(rng.randint(1, 30))
                    case 3 if len(body) > 4:
                        body[2:4] = rng.randbytes(2)
            name = ("modes", "ages")[number % 2]
            status, said = await running.post(bytes(body), name=name)
            seen[status] = seen.get(status, 0) + 1
            assert status in (200, 400, 409)
            if status == 200:
                accepted[name] += said["accepted"]
        assert seen[400] > 100
        assert seen[409] > 20
        for name, reports in accepted.items():
            assert running.broker.reports(running.spec(name)) == reports


async def test_pages_of_configured_origins_may_upload_and_no_others(tmp_path: Path):
    origin, other = "https://survey.example", "https://other.example"
    async with gateway(tmp_path, origins=[origin], token="t" * 20) as running:
        url = f"{running.url}/v1/collections/modes/reports"
        asks = {"Access-Control-Request-Method": "POST"}
        async with running.session.options(url, headers={"Origin": origin, **asks}) as answer:
            assert answer.status == 204
            assert answer.headers["Access-Control-Allow-Origin"] == origin
            assert answer.headers["Access-Control-Allow-Methods"] == "POST"
            allowed = answer.headers["Access-Control-Allow-Headers"]
            assert allowed == "Content-Type, Idempotency-Key, Authorization"
            assert answer.headers["Vary"] == "Origin"
        async with running.session.options(url, headers={"Origin": other, **asks}) as answer:
            assert answer.status == 403
            assert "Access-Control-Allow-Origin" not in answer.headers
        bearer = {"Authorization": "Bearer " + "t" * 20}
        assert (await running.post(running.frame()))[0] == 401
        assert (await running.post(running.frame(), **bearer, Origin=origin))[0] == 200
        spec = f"{running.url}/v1/collections/modes/spec"
        async with running.session.get(spec, headers={"Origin": origin}) as answer:
            document = json.loads(await answer.text())
            assert document == running.spec().device_document()
            assert answer.headers["Access-Control-Allow-Origin"] == origin
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
    async with gateway(tmp_path, origins=["*"]) as running:
        url = f"{running.url}/v1/collections/modes/reports"
        async with running.session.options(url, headers={"Origin": other, **asks}) as answer:
            assert answer.headers["Access-Control-Allow-Origin"] == "*"


async def test_a_gateway_that_ends_finishes_what_it_took_and_refuses_the_rest(tmp_path: Path):
    async with gateway(tmp_path, linger="1m") as running:
        first = asyncio.create_task(running.post(running.frame(2)))
        await eventually(lambda: running.served.uploads.waiting == 1)
        running.served.closing = True
        assert (await running.post(running.frame()))[0] == 503
        async with running.session.get(f"{running.url}/readyz") as answer:
            assert answer.status == 503
        await running.served.uploads.finish()
        assert await first == (200, {"accepted": 2})


async def test_reports_of_an_earlier_spec_are_taken_beside_the_collections_own(tmp_path: Path):
    (tmp_path / "old.toml").write_text(
        '[collection.modes]\nmechanism = "randomized-response"\nepsilon = 0.5\n'
        'domain = { values = ["walk", "bike", "bus"] }\nwindow = { size = "1h" }\n'
    )
    modes = {**TABLES["collection"]["modes"], "accept": ["old.toml"]}
    async with gateway(tmp_path, collections={"modes": modes}) as running:
        own, (old,) = running.spec(), running.config.collections["modes"].accept
        frames = [running.frame(2), old.spec.frame(["bus"] * 3, times_ms=[NOW_MS] * 3)]
        answers = await asyncio.gather(*map(running.post, frames))
        assert answers == [(200, {"accepted": 2}), (200, {"accepted": 3})]
        assert {frame[4:12] for _, frame in running.broker.frames} == {
            own.fingerprint, old.spec.fingerprint,
        }  # fmt: skip
        assert (await running.post(running.frame(name="ages")))[0] == 409


async def test_metrics_and_reasons_are_for_who_may_read_them(tmp_path: Path):
    async with gateway(tmp_path) as running:
        running.served.problems.append("topic modes is missing")

        async def get(path: str, **headers: str) -> tuple[int, str]:
            async with running.session.get(running.url + path, headers=headers) as answer:
                return answer.status, await answer.text()

        bearer = {"Authorization": "Bearer " + "r" * 20}
        for access, shown, metrics in (
            (Access(token=b"r" * 20), False, 401),
            (None, False, 403),
            (Access(), True, 200),
        ):
            running.served.metrics_access = access
            status, said = await get("/readyz")
            assert (status, "topic modes" in said) == (503, shown)
            assert (await get("/metrics"))[0] == metrics
        running.served.metrics_access = Access(token=b"r" * 20)
        assert (await get("/metrics", **bearer))[0] == 200
        assert "topic modes" in (await get("/readyz", **bearer))[1]
        assert (await get("/healthz"))[0] == 200
