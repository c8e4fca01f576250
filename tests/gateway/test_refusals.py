"""What a gateway refuses, and the reason it gives: bodies, keys, origins and readers."""

import json
import random
from collections.abc import AsyncIterator
from pathlib import Path

from ldpstream.agents.edge.gateway_app import MEDIA_TYPE
from ldpstream.agents.web.requests import Access
from tests.gateway.serving import KEY, NOW_MS, gateway


async def test_malformed_uploads_are_refused_with_a_reason(tmp_path: Path):
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
            assert "unknown path" in (await answer.json(content_type=None))["detail"]

        async def chunks() -> AsyncIterator[bytes]:
            for _ in range(30):
                yield bytes(100)

        headers = {"Content-Type": MEDIA_TYPE, "Idempotency-Key": KEY}
        async with running.session.post(url, data=chunks(), headers=headers) as answer:
            assert answer.status == 413


async def test_every_fuzzed_body_is_counted_or_refused(tmp_path: Path):
    rng = random.Random(1)
    async with gateway(tmp_path, linger="0s") as running:
        frames = [running.frame(n, name=name) for n in (1, 2, 9) for name in ("modes", "ages")]
        accepted = {"modes": 0, "ages": 0}
        seen: dict[int, int] = {}
        for number in range(300):
            body = bytearray(rng.choice(frames))
            for _ in range(rng.randint(0, 3)):
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
        assert seen[200] > 20
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


async def test_metrics_and_reasons_need_access_to_read(tmp_path: Path):
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
