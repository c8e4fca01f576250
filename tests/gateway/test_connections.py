"""Connections of a gateway: too many, too slow, over TLS, or cut off by the client."""

import asyncio
import socket
import ssl
import tracemalloc
from pathlib import Path

import pytest
from aiohttp import ClientError, ClientSession, TCPConnector

from ldpstream.agents.config import GatewayConfig
from ldpstream.agents.edge import gateway_app as app
from ldpstream.agents.engine.process import HttpUnavailableError
from ldpstream.agents.web import connection_limits as connections
from ldpstream.agents.web.server import server_tls
from tests.certificates import make_certificates, skip_without_openssl
from tests.gateway.serving import KEY, Gateway, gateway
from tests.processes import PATIENCE_SECONDS, eventually


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
        "POST /v1/collections/modes/reports HTTP/1.1\r\nHost: localhost\r\n"
        f"Content-Type: {app.MEDIA_TYPE}\r\nIdempotency-Key: {key}\r\n"
        f"Content-Length: {length}\r\n\r\n"
    ).encode()


async def test_idle_and_slow_connections_are_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.3)
    monkeypatch.setattr(connections, "IDLE_SECONDS", 0.3)
    monkeypatch.setattr(connections, "BODY_SECONDS", 0.3)
    async with gateway(tmp_path) as running:
        silent = await connect(running)
        slow = await connect(running, b"POST / HTTP/1.1\r\nHost: localhost\r\nX-")
        again = await connect(running, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert await again[0].readline() == b"HTTP/1.1 200 OK\r\n"
        again[1].write(b"GET /healthz HTTP/1.1\r\nHos")
        stuck = await connect(running, head(25) + b"\x01")
        line = await stuck[0].readline()
        assert line == b"HTTP/1.1 503 Service Unavailable\r\n"
        for reader, writer in (silent, slow, again, stuck):
            async with asyncio.timeout(PATIENCE_SECONDS):
                while await reader.read(1000):
                    pass
            writer.close()
        assert (await running.post(running.frame()))[0] == 200


MALFORMED = {
    "words": b"who are you?\r\n\r\n",
    "another version": b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n",
    "a greeting of TLS": b"\x16\x03\x01\x02\x00\x01\x00",
    "a long header": b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 9_000 + b"\r\n\r\n",
    "two lengths": head(5).replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n"),
    "a bad chunk": head(5).replace(b"Content-Length: 5", b"Transfer-Encoding: chunked") + b"ZZ\r\n",
}


@pytest.mark.parametrize("sent", MALFORMED.values(), ids=MALFORMED)
async def test_malformed_http_is_answered_and_not_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, sent: bytes
):
    caplog.set_level("DEBUG")
    async with gateway(tmp_path) as running:
        reader, writer = await connect(running, sent)
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert (await reader.read(12)).split()[1] == b"400"
        writer.close()
        assert (await running.post(running.frame()))[0] == 200
        assert running.broker.reports(running.spec()) == 1
    said = [record.getMessage() + str(record.exc_info) for record in caplog.records]
    assert not [text for text in said if "127.0.0.1" in text or "Error" in text]


async def test_connections_are_bounded(tmp_path: Path):
    async with gateway(tmp_path, connections=5) as running:
        silent = [await connect(running) for _ in range(5)]
        await eventually(lambda: running.served.connections() == 5)
        # The longest idle one gives way.
        assert (await running.post(running.frame()))[0] == 200
        assert await silent[0][0].read() == b""
        assert running.served.connections() == 5
        running.broker.open.clear()
        frame = running.frame()
        waiting = [asyncio.create_task(running.post(frame, f"{n:032x}")) for n in range(5)]
        await eventually(lambda: running.served.uploads.waiting == 5)
        assert all([await reader.read() == b"" for reader, _ in silent])
        # Every connection carries an upload that has arrived: only probes are answered.
        assert await ask(running, b"GET /healthz") == b"HTTP/1.1 200 OK\r\n"
        assert await ask(running, b"GET /readyz") == b"HTTP/1.1 200 OK\r\n"
        assert await ask(running, b"GET /metrics") == b"HTTP/1.1 200 OK\r\n"
        reader, writer = await connect(running, head(len(frame)) + frame)
        said = await reader.read()
        assert said.startswith(b"HTTP/1.1 503 ")
        assert b"Retry-After: 2\r\n" in said
        running.broker.open.set()
        assert [status for status, _ in await asyncio.gather(*waiting)] == [200] * 5
        for _, other in (*silent, (reader, writer)):
            other.close()
        assert (await running.post(frame))[0] == 200


async def ask(running: Gateway, line: bytes, *, headers: bytes = b"") -> bytes:
    """Return the status line of the answer on a connection of its own."""
    request = line + b" HTTP/1.1\r\nHost: localhost\r\n" + headers + b"\r\n"
    reader, writer = await connect(running, request)
    async with asyncio.timeout(PATIENCE_SECONDS):
        said = await reader.readline()
    writer.close()
    return said


async def test_of_a_client_behind_a_proxy_the_oldest_upload_gives_way(tmp_path: Path):
    settings = {"connections_per_peer": 2, "trusted_proxies": ["127.0.0.0/8"]}
    async with gateway(tmp_path, **settings) as running:
        frame, opened = running.frame(), []
        for number, client in enumerate(("10.0.0.1", "10.0.0.2", "10.0.0.2", "10.0.0.2")):
            # The proxy adds the last address; what precedes it is the client's own claim.
            named = f"X-Forwarded-For: 10.0.0.{number + 7}, {client}\r\nHost: survey.example\r\n"
            asked = head(len(frame), f"{number:032x}").replace(
                b"Host: localhost\r\n", named.encode()
            )
            opened.append(await connect(running, asked + frame[:-1]))
            await eventually(lambda: running.served.uploads.bodies.arriving_bytes > 0)
            await asyncio.sleep(0.05)
        assert await opened[1][0].readline() == b"HTTP/1.1 503 Service Unavailable\r\n"
        for reader, writer in (opened[0], *opened[2:]):
            writer.write(frame[-1:])
            assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
        for _, writer in opened:
            writer.close()
        assert running.broker.reports(running.spec()) == 3


async def test_other_hosts_and_sites_are_refused_and_no_version_is_disclosed(tmp_path: Path):
    async with gateway(tmp_path) as running:
        for path in ("/healthz", "/metrics", "/v1/collections/modes/spec"):
            asked = {"Host": "evil.example"}
            async with running.session.get(running.url + path, headers=asked) as answer:
                assert answer.status == 421
                assert "Server" not in answer.headers
        for site, expected in (("cross-site", 403), ("same-site", 403), ("none", 200)):
            asked = {"Sec-Fetch-Site": site}
            async with running.session.get(f"{running.url}/metrics", headers=asked) as answer:
                assert answer.status == expected
        reader, writer = await connect(running, b"who are you?\r\n\r\n")
        said = await reader.read()
        assert said.split()[1] == b"400"
        assert b"Server" not in said
        writer.close()


async def test_bodies_still_arriving_share_the_bytes_of_the_queue(tmp_path: Path):
    async with gateway(tmp_path, queue_bytes=500_000) as running:
        frame, uploads = running.frame(200_000), running.served.uploads
        held = [await connect(running, head(len(frame), n * 32) + frame[:-1]) for n in "ab"]
        await eventually(lambda: uploads.bodies.arriving_bytes == 2 * (len(frame) - 1))
        # The oldest unfinished body gives way, to one of known length and to a chunked one.
        assert (await running.post(frame))[0] == 200
        assert await held[0][0].readline() == b"HTTP/1.1 503 Service Unavailable\r\n"
        chunked = head(0).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
        reader, writer = await connect(running, chunked)
        writer.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(frame), frame))
        assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
        writer.close()
        running.broker.open.clear()
        waiting = [asyncio.create_task(running.post(frame, n * 32)) for n in "cd"]
        await eventually(lambda: uploads.waiting == 2)
        # Bodies that have arrived do not: the next is refused before any of it is sent.
        reader, writer = await connect(running, head(len(frame)))
        assert await reader.readline() == b"HTTP/1.1 429 Too Many Requests\r\n"
        writer.close()
        running.broker.open.set()
        assert [status for status, _ in await asyncio.gather(*waiting)] == [200] * 2
        for _, writer in held:
            writer.close()
        assert running.broker.reports(running.spec()) == 800_000
        assert (uploads.bodies.arriving_bytes, uploads.waiting_bytes) == (0, 0)


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


async def test_an_upload_counts_though_its_client_hangs_up(tmp_path: Path):
    async with gateway(tmp_path) as running:
        running.broker.open.clear()
        frame = running.frame(3)
        _, writer = await connect(running, head(len(frame)) + frame)
        await eventually(lambda: running.served.uploads.waiting == 1)
        writer.transport.abort()
        running.broker.open.set()
        assert await running.post(frame, KEY) == (200, {"accepted": 3})
        assert running.broker.reports(running.spec()) == 3


async def test_uploads_over_tls_are_accepted(tmp_path: Path):
    skip_without_openssl()
    made = make_certificates(tmp_path)
    table = GatewayConfig(certificate=str(made.broker), key=str(made.broker))
    context = server_tls(table, "gateway")
    async with gateway(tmp_path, tls=context) as running:
        assert running.url.startswith("https://")
        trusting = ssl.create_default_context(cafile=made.authority)
        async with ClientSession(connector=TCPConnector(ssl=trusting, limit=1)) as session:
            # All on one connection, which is read again once its upload is answered.
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
    table = GatewayConfig(certificate=str(made.client), key=str(made.client_key))
    with pytest.raises(HttpUnavailableError, match=r"gateway\.certificate, gateway\.key: expected"):
        server_tls(table, "gateway")
