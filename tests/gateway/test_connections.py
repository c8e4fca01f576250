"""Connections: how many, how slow, over TLS, and of clients that break off."""

import asyncio
import socket
import ssl
import tracemalloc
from pathlib import Path

import pytest
from aiohttp import ClientError, ClientSession, TCPConnector

from ldpstream.agents.gateway import app, listen
from ldpstream.agents.http import door
from ldpstream.agents.http.door import HttpUnavailableError
from ldpstream.agents.http.serve import server_tls
from tests.certificates import make_certificates, skip_without_openssl
from tests.gateway.serving import KEY, Gateway, gateway
from tests.processes import eventually


async def connect(
    running: Gateway, sent: bytes = b""
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, port = running.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(sent)
    await writer.drain()
    return reader, writer


def head(length: int, key: str = KEY) -> bytes:
    return (
        "POST /v1/collections/modes/reports HTTP/1.1\r\nHost: here\r\n"
        f"Content-Type: {app.MEDIA_TYPE}\r\nIdempotency-Key: {key}\r\n"
        f"Content-Length: {length}\r\n\r\n"
    ).encode()


async def test_who_says_nothing_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(door, "FIRST_REQUEST_SECONDS", 0.3)
    monkeypatch.setattr(listen, "_IDLE_SECONDS", 0.3)
    monkeypatch.setattr(app, "BODY_SECONDS", 0.3)
    async with gateway(tmp_path) as running:
        silent = await connect(running)
        slow = await connect(running, b"POST / HTTP/1.1\r\nHost: x\r\nX-")
        again = await connect(running, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert await again[0].readline() == b"HTTP/1.1 200 OK\r\n"
        again[1].write(b"GET /healthz HTTP/1.1\r\nHos")
        stuck = await connect(running, head(25) + b"\x01")
        line = await stuck[0].readline()
        assert line == b"HTTP/1.1 503 Service Unavailable\r\n"
        for reader, writer in (silent, slow, again, stuck):
            async with asyncio.timeout(60):
                while await reader.read(1000):
                    pass
            writer.close()
        assert (await running.post(running.frame()))[0] == 200


NO_HTTP = {
    "words": b"who are you?\r\n\r\n",
    "another version": b"GET / HTTP/9.9\r\nHost: x\r\n\r\n",
    "a greeting of TLS": b"\x16\x03\x01\x02\x00\x01\x00",
    "a long header": b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 9_000 + b"\r\n\r\n",
    "two lengths": head(5).replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n"),
    "a bad chunk": head(5).replace(b"Content-Length: 5", b"Transfer-Encoding: chunked") + b"ZZ\r\n",
}


@pytest.mark.parametrize("sent", NO_HTTP.values(), ids=NO_HTTP)
async def test_what_is_no_http_is_answered_and_leaves_no_trace(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, sent: bytes
):
    caplog.set_level("DEBUG")
    async with gateway(tmp_path) as running:
        reader, writer = await connect(running, sent)
        async with asyncio.timeout(60):
            assert (await reader.read(12)).split()[1] == b"400"
        writer.close()
        assert (await running.post(running.frame()))[0] == 200
        assert running.broker.reports(running.spec()) == 1
    said = [record.getMessage() + str(record.exc_info) for record in caplog.records]
    assert not [text for text in said if "127.0.0.1" in text or "Error" in text]


async def test_connections_are_bounded(tmp_path: Path):
    async with gateway(tmp_path, connections=5) as running:
        open_ = [await connect(running) for _ in range(5)]
        await eventually(lambda: running.served.connections() == 5)
        reader, writer = await connect(running)
        said = await reader.read()
        assert said.startswith(b"HTTP/1.1 503 ")
        assert b"Retry-After: 2\r\n" in said
        writer.close()
        for _, other in open_:
            other.close()
        await eventually(lambda: running.served.connections() == 0)
        assert (await running.post(running.frame()))[0] == 200


async def test_bodies_that_arrive_share_the_bytes_of_the_queue(tmp_path: Path):
    async with gateway(tmp_path, queue_bytes=500_000) as running:
        frame, uploads = running.frame(200_000), running.served.uploads
        held = [await connect(running, head(len(frame), n * 32) + frame[:-1]) for n in "ab"]
        await eventually(lambda: uploads.arriving_bytes == 2 * (len(frame) - 1))
        reader, writer = await connect(running, head(len(frame)))
        # Before any of its body is sent.
        assert await reader.readline() == b"HTTP/1.1 429 Too Many Requests\r\n"
        writer.close()
        chunked = head(0).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
        reader, writer = await connect(running, chunked)
        writer.write(b"1fffff\r\n" + frame)
        assert await reader.readline() == b"HTTP/1.1 429 Too Many Requests\r\n"
        writer.close()
        for reader, writer in held:
            writer.write(frame[-1:])
            assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
            writer.close()
        assert running.broker.reports(running.spec()) == 400_000
        assert (uploads.arriving_bytes, uploads.waiting_bytes) == (0, 0)


async def test_requests_sent_before_the_answer_are_not_held_in_memory(tmp_path: Path):
    async with gateway(tmp_path, linger="0s") as running:
        running.broker.open.clear()
        frame = running.frame(200_000)
        sent = b"".join(head(len(frame), f"{n:032x}") + frame for n in range(30))
        host, port = running.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as client:
            client.setblocking(False)
            tracemalloc.start()
            loop = asyncio.get_running_loop()
            sending = asyncio.create_task(loop.sock_sendall(client, sent))
            await eventually(lambda: running.served.uploads.waiting == 1)
            for _ in range(300):
                await asyncio.sleep(0)
            held, _ = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert held < 1_500_000
            running.broker.open.set()
            await sending
            await eventually(lambda: running.broker.reports(running.spec()) == 30 * 200_000)


async def test_who_breaks_off_has_uploaded_all_the_same(tmp_path: Path):
    async with gateway(tmp_path) as running:
        running.broker.open.clear()
        frame = running.frame(3)
        _, writer = await connect(running, head(len(frame)) + frame)
        await eventually(lambda: running.served.uploads.waiting == 1)
        writer.transport.abort()
        running.broker.open.set()
        assert await running.post(frame, KEY) == (200, {"accepted": 3})
        assert running.broker.reports(running.spec()) == 3


async def test_uploads_come_over_tls_too(tmp_path: Path):
    skip_without_openssl()
    made = make_certificates(tmp_path)
    context = server_tls(made.broker, made.broker, table="gateway")
    async with gateway(tmp_path, tls=context) as running:
        assert running.url.startswith("https://")
        trusting = ssl.create_default_context(cafile=made.authority)
        async with ClientSession(connector=TCPConnector(ssl=trusting, limit=1)) as session:
            # One connection: it is read from again once an upload has been answered.
            for n in range(3):
                headers = {"Content-Type": app.MEDIA_TYPE, "Idempotency-Key": f"{n:032x}"}
                async with session.post(
                    f"{running.url}/v1/collections/modes/reports",
                    data=running.frame(100_000),
                    headers=headers,
                ) as answer:
                    assert answer.status == 200
            async with session.get(f"{running.url}/readyz") as answer:
                assert answer.status == 200
        assert running.broker.reports(running.spec()) == 300_000
        plain = f"http{running.url.removeprefix('https')}/healthz"
        with pytest.raises(ClientError):
            await running.session.get(plain)
    with pytest.raises(HttpUnavailableError, match=r"gateway\.certificate, gateway\.key: expected"):
        server_tls(made.client, made.client_key, table="gateway")
