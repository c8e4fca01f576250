"""What a gateway answers, and what the broker then has."""

import asyncio
import hashlib
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from ldpstream.agents.edge.gateway_app import MEDIA_TYPE
from ldpstream.mechanisms import decode_frame
from tests.gateway.serving import KEY, NOW_MS, TABLES, Broker, Gateway, gateway
from tests.processes import eventually


async def test_many_small_uploads_share_frames_and_each_counts_once(tmp_path: Path):
    async with gateway(tmp_path, linger="1m") as running:
        posts = [running.post(running.frame(1 + n % 3)) for n in range(60)]
        posts += [running.post(running.frame(2, name="ages"), name="ages") for _ in range(10)]
        tasks = [asyncio.create_task(post) for post in posts]
        await eventually(lambda: running.served.uploads.waiting == 70)
        await running.served.uploads.drain()
        answers = await asyncio.gather(*tasks)
        assert [said for _, said in answers[:3]] == [{"accepted": n} for n in (1, 2, 3)]
        assert all(status == 200 for status, _ in answers)
        assert running.broker.reports(running.spec()) == 120
        assert running.broker.reports(running.spec("ages")) == 20
        assert len(running.broker.frames) == 2
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
            409, "expected the same bytes as before with this key",
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
    """As numbers, a report of one byte would take 16 more."""
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
async def test_a_full_queue_answers_429_until_it_has_room(
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


async def test_a_silent_broker_is_503_and_a_repeat_waits_for_the_first(tmp_path: Path):
    async with gateway(tmp_path, patience="100ms") as running:
        running.broker.open.clear()
        frame = running.frame(5)
        assert (await running.post(frame, KEY))[0] == 503
        assert (await running.post(frame, KEY))[0] == 503
        assert running.served.uploads.waiting == 1
        # A key is written to disk before its upload is answered, which can take longer than 100 ms.
        patient = running.config.gateway.model_copy(update={"patience_ms": 60_000})
        running.served.uploads._config = patient
        running.broker.open.set()
        assert await running.post(frame, KEY) == (200, {"accepted": 5})
        assert running.broker.reports(running.spec()) == 5
        # An upload that the producer gave up is forgotten: its repeat starts over.
        running.broker.failing = 1
        assert (await running.post(frame))[0] == 503
        assert running.served.uploads.waiting == 0
        assert (await running.post(frame))[0] == 200


async def test_a_closing_gateway_finishes_what_it_took_and_refuses_the_rest(tmp_path: Path):
    async with gateway(tmp_path, linger="1m") as running:
        first = asyncio.create_task(running.post(running.frame(2)))
        await eventually(lambda: running.served.uploads.waiting == 1)
        running.served.closing = True
        assert (await running.post(running.frame()))[0] == 503
        async with running.session.get(f"{running.url}/readyz") as answer:
            assert answer.status == 503
        await running.served.uploads.drain()
        assert await first == (200, {"accepted": 2})


async def test_reports_of_an_accepted_earlier_spec_are_taken_too(tmp_path: Path):
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


async def test_a_bad_upload_is_refused_at_once_and_those_beside_it_are_accepted(tmp_path: Path):
    async with gateway(tmp_path, linger="1m") as running:
        good = [asyncio.create_task(running.post(running.frame(2))) for _ in range(3)]
        bad = running.frame(3)[:-2] + b"\x07\x00"
        assert (await running.post(bad, KEY))[0] == 400
        # Its key is not used up.
        again = asyncio.create_task(running.post(running.frame(4), KEY))
        await eventually(lambda: running.served.uploads.waiting == 4)
        await running.served.uploads.drain()
        assert await asyncio.gather(*good) == [(200, {"accepted": 2})] * 3
        assert await again == (200, {"accepted": 4})
        assert len(running.broker.frames) == 1
        assert running.broker.reports(running.spec()) == 10


@pytest.mark.parametrize("origins", [[], ["https://survey.example"], ["*"]])
async def test_uploads_are_answered_alike_with_and_without_the_router(
    tmp_path: Path, origins: list[str]
):
    async def answers(running: Gateway, path: str) -> list[tuple[int, dict[str, str], str]]:
        got = []
        for body, key in ((running.frame(2), path), (running.frame(3), path), (b"", "bad")):
            headers = {
                "Content-Type": MEDIA_TYPE,
                "Idempotency-Key": hashlib.md5(key.encode()).hexdigest(),
                "Origin": "https://survey.example",
            }
            url = f"{running.url}/v1/collections/modes/reports{path}"
            async with running.session.post(url, data=body, headers=headers) as answer:
                shown = {name: text for name, text in answer.headers.items() if name != "Date"}
                got.append((answer.status, shown, await answer.text()))
        return got

    async with gateway(tmp_path, origins=origins) as running:
        direct = await answers(running, "")
        assert [status for status, _, _ in direct] == [200, 409, 400]
        # With a query a path is not the one that is looked up before the router.
        assert await answers(running, "?x=1") == direct


RULED: dict[str, Any] = {
    "ruled": TABLES["collection"]["modes"] | {"one_report": True, "partitions": 3}
}
SECRETS = [bytes([number]) * 16 for number in range(30)]


async def test_uploads_are_framed_by_the_partition_of_their_token(tmp_path: Path):
    async with gateway(tmp_path, collections=RULED, linger="1m") as running:
        spec = running.spec("ruled")
        frames = [spec.frame(["bus"], times_ms=[NOW_MS], secret=secret) for secret in SECRETS]
        posts = [asyncio.create_task(running.post(one, name="ruled")) for one in frames]
        await eventually(lambda: running.served.uploads.waiting == 30)
        await running.served.uploads.drain()
        assert await asyncio.gather(*posts) == [(200, {"accepted": 1})] * 30
        rule, found = spec.one_report, set()
        assert rule is not None
        for _, frame in running.broker.frames:
            decoded = decode_frame(
                frame, fingerprint=spec.fingerprint, report_bytes=spec.report_bytes
            )
            _, tokens = spec.split(decoded.payload)
            assert set(rule.partition(tokens)) == {rule.frame_partition(frame)}
            found |= {bytes(token) for token in tokens}
        assert len(running.broker.frames) == 3
        times_ms = np.array([NOW_MS])
        assert found == {spec.tokens(secret, times_ms).tobytes() for secret in SECRETS}


async def test_uploads_of_several_partitions_and_without_tokens_are_refused(tmp_path: Path):
    async with gateway(tmp_path, collections=RULED) as running:
        spec = running.spec("ruled")
        frames = [spec.frame(["bus"], times_ms=[NOW_MS], secret=secret) for secret in SECRETS[:9]]
        count = len(frames).to_bytes(4, "little")
        both = frames[0][:20] + count + b"".join(frame[24:] for frame in frames)
        status, said = await running.post(both, name="ruled")
        assert (status, said["detail"]) == (400, "expected tokens of one partition")
        plain = frames[0][:24] + frames[0][24:-8]
        status, _ = await running.post(plain, name="ruled")
        assert status == 400
        status, _ = await running.post(running.frame(), name="ruled")
        assert status == 409
        assert not running.broker.frames
