"""The gateway as a process between uploads and a broker: what a worker then counts."""

import asyncio
import secrets
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from ldpstream.mechanisms import decode_frame
from tests.broker.conftest import on_kafka, on_one_broker
from tests.brokers import Broker, KafkaServer, skip_without_kafka
from tests.forked import MAIN, Forked
from tests.lab import Lab
from tests.processes import PATIENCE_SECONDS, Worker, eventually

pytestmark = pytest.mark.broker

# Kills itself without any clean-up, just before or just after the key is on disk.
_KILLED = """
import os, signal
from ldpstream.agents.edge.upload_keys import UploadKeys
add = UploadKeys.add
def killed(self, uploads, *, now_ms):
    if {after}:
        add(self, uploads, now_ms=now_ms)
    os.kill(os.getpid(), signal.SIGKILL)
UploadKeys.add = killed
"""
_AGENT = "a-device-that-says-who-it-is/1.0"


@contextmanager
def started(lab: Lab, *options: str, program: str = "") -> Iterator[Worker]:
    """Run a gateway process for the length of a block."""
    words = ["gateway", "-c", str(lab.file), *options]
    running = Worker(Forked(words, program=program + MAIN, strict=True))
    try:
        running.wait_ready()
        yield running
    finally:
        running.kill()


def configure(lab: Lab, settings: str = "") -> Lab:
    text = lab.file.read_text()
    table = f'[gateway]\nhttp = "127.0.0.1:0"\nlinger = "20ms"\n{settings}\n'
    lab.file.write_text(text.replace("[collection.", f"{table}[collection.", 1))
    lab.reload()
    return lab


def post(url: str, body: bytes, key: str = "") -> int:
    """Post a frame and return the status; 0 where nothing answers."""
    headers = {
        "Content-Type": "application/vnd.ldpstream.frame",
        "Idempotency-Key": key or secrets.token_hex(16),
        "User-Agent": _AGENT,
        "X-Forwarded-For": "192.0.2.77",
    }
    request = urllib.request.Request(
        f"{url}/v1/collections/trips/reports", data=body, headers=headers, method="POST"
    )
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code
    except (urllib.error.URLError, OSError):
        return 0


def frame(lab: Lab, n: int) -> bytes:
    now_ms = time.time_ns() // 1_000_000
    reports = lab.reports(n)
    return lab.collection.spec.frame_reports(reports, times_ms=np.full(n, now_ms))


async def reports(lab: Lab) -> int:
    """Return the number of reports on the topic."""
    spec, total = lab.collection.spec, 0
    for record in await lab.records(lab.collection.topics.source):
        assert (record.key, record.headers) == (None, ())
        found = decode_frame(record.value or b"", fingerprint=spec.fingerprint, report_bytes=1)
        total += int(found.counts.sum())
    return total


@on_kafka
async def test_accepted_reports_are_counted_and_their_senders_not_logged(lab: Lab) -> None:
    configure(lab)
    with started(lab) as gateway:
        # No topic yet: one that a producer creates could have too few partitions.
        assert gateway.status("/readyz") == 503
        assert await asyncio.to_thread(post, gateway.url, frame(lab, 1)) == 503
        with lab.worker() as worker:
            await eventually(lambda: gateway.status("/readyz") == 200)
            key, body = secrets.token_hex(16), frame(lab, 7)
            posts = [(frame(lab, n), "") for n in range(1, 31)] + [(body, key)] * 3
            answers = await asyncio.gather(
                *(asyncio.to_thread(post, gateway.url, *one) for one in posts)
            )
            assert answers == [200] * 33
            assert await asyncio.to_thread(post, gateway.url, b"no frame") == 400
            total = sum(range(1, 31)) + 7
            await eventually(
                lambda: worker.metrics("ldpstream_reports_total", result="counted") == total
            )
            assert gateway.metrics("ldpstream_gateway_reports_total", collection="trips") == total
            device = gateway.get("/v1/collections/trips/spec")
            assert device == worker.get("/api/collections/trips/spec")
            assert worker.terminate() == 0
        assert gateway.terminate() == 0
        said = gateway.errors()
    assert said == ""
    assert await reports(lab) == total


@on_one_broker
@pytest.mark.parametrize(("after", "twice"), [(False, True), (True, False)])
async def test_a_gateway_is_killed_between_the_brokers_answer_and_its_own(
    lab: Lab, after: bool, twice: bool
) -> None:
    configure(lab)
    await lab.create(lab.collection.topics.source, partitions=4)
    key, body = secrets.token_hex(16), frame(lab, 5)
    with started(lab, program=_KILLED.format(after=after)) as gateway:
        assert await asyncio.to_thread(post, gateway.url, body, key) == 0
        gateway.wait()
    assert await reports(lab) == 5
    if not twice:
        lab.file.write_text(lab.file.read_text().replace('linger = "20ms"', 'linger = "1m"'))
    with started(lab) as gateway:
        # Nothing that was not answered is lost; what is on disk is not counted again.
        assert await asyncio.to_thread(post, gateway.url, body, key) == 200
        if not twice:
            # What lingers at SIGTERM is sent at once, and answered.
            last = asyncio.create_task(asyncio.to_thread(post, gateway.url, frame(lab, 1)))
            await eventually(lambda: gateway.metrics("ldpstream_gateway_queue_uploads") == 1)
            assert gateway.terminate() == 0
            assert await last == 200
    assert await reports(lab) == (10 if twice else 6)


async def test_a_broker_that_dies_and_comes_back_has_everything_once(tmp_path: Path) -> None:
    skip_without_kafka()
    with KafkaServer.prepared() as server:
        server.start()
        lab = configure(Lab(Broker("kafka", server.bootstrap), tmp_path), 'patience = "500ms"')
        await lab.create(lab.collection.topics.source, partitions=4)
        with started(lab) as gateway:
            uploads = [(frame(lab, n), secrets.token_hex(16)) for n in range(1, 21)]

            async def send(body: bytes, key: str, said: list[int]) -> None:
                """Send the same bytes until they are accepted; `said` gets all answers."""
                async with asyncio.timeout(PATIENCE_SECONDS):
                    while 200 not in said:
                        said.append(await asyncio.to_thread(post, gateway.url, body, key))
                        await asyncio.sleep(0.2)

            before: list[list[int]] = [[] for _ in uploads[:5]]
            await asyncio.gather(
                *(send(*one, said) for one, said in zip(uploads[:5], before, strict=True))
            )
            server.stop()
            answers: list[list[int]] = [[] for _ in uploads]
            during = [
                asyncio.create_task(send(*one, said))
                for one, said in zip(uploads, answers, strict=True)
            ]
            # Known keys are answered without a broker, others are refused.
            await eventually(lambda: all(answers))
            await eventually(lambda: gateway.status("/readyz") == 503)
            assert gateway.status("/healthz") == 200
            await asyncio.to_thread(server.start)
            async with asyncio.timeout(PATIENCE_SECONDS):
                await asyncio.gather(*during)
            # On a busy machine the first ones may have been refused for a while too.
            assert all(set(said) <= {503, 200} for said in before)
            assert answers[:5] == [[200]] * 5
            assert all(set(said) == {503, 200} for said in answers[5:])
            assert gateway.terminate() == 0
            said = gateway.errors()
            assert "192.0.2" not in said
            assert _AGENT not in said
        assert await reports(lab) == sum(range(1, 21))


@on_kafka
async def test_a_shuffled_topic_has_batches_alone(lab: Lab) -> None:
    """Six uploads, batches of three: one goes once all have come, the other as the gateway ends."""
    configure(lab, "shuffle = 3")
    text = lab.file.read_text()
    lab.file.write_text(text.replace('size = "10s", grace = "0s"', 'size = "1d", grace = "1d"'))
    lab.reload()
    source, bodies = lab.collection.topics.source, [frame(lab, 1) for _ in range(6)]
    await lab.create(source, partitions=lab.collection.partitions)
    with started(lab) as gateway:
        await eventually(lambda: gateway.status("/readyz") == 200)
        posts = [asyncio.create_task(asyncio.to_thread(post, gateway.url, one)) for one in bodies]
        await asyncio.wait(posts, return_when=asyncio.FIRST_COMPLETED)
        assert await asyncio.to_thread(gateway.terminate) == 0
        answers = await asyncio.gather(*posts)
    spec, counts = lab.collection.spec, []
    for record in await lab.records(source):
        assert (record.key, record.headers) == (None, ())
        found = decode_frame(record.value or b"", fingerprint=spec.fingerprint, report_bytes=1)
        assert len(found.times_ms) == 1
        assert found.payload[:, 0].tolist() == sorted(found.payload[:, 0].tolist())
        counts.append(len(found.payload))
    assert answers == [200] * 6
    assert counts == [3, 3]
