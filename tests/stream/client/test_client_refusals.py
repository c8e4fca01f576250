"""Errors of the typed client: a worker's refusals, and servers that are no worker."""

import asyncio
import socket
import ssl
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from ldpstream.agents.client import (
    AddressError,
    Client,
    EstimateRequest,
    NotAWorkerError,
    RefusedError,
    TokenRefusedError,
    UnavailableError,
    UnreachableError,
    connect,
)
from ldpstream.agents.document.client import session
from ldpstream.agents.web import build_http
from ldpstream.agents.web.requests import Access
from tests.certificates import make_certificates, skip_without_openssl
from tests.ports import free_ports
from tests.stream.asking import TOKEN
from tests.stream.serving import CITY, Pipeline, serve_collections


async def test_refusals_raise_the_workers_message(worker: Client) -> None:
    with pytest.raises(RefusedError, match="no such collection; expected one of city") as refused:
        await worker.status("nowhere")
    assert refused.value.status == 404
    with pytest.raises(RefusedError, match="end: expected start and end") as refused:
        await worker.estimate("city", EstimateRequest(start=0))
    assert refused.value.status == 400


async def test_unready_foreign_and_absent_servers_raise_different_errors() -> None:
    pipeline = serve_collections({"city": CITY}, read=False)
    async with (
        TestServer(build_http(pipeline)) as server,
        connect(str(server.make_url("/"))) as worker,
    ):
        assert not (await worker.readiness()).ready
        with pytest.raises(UnavailableError, match="its state is still being read"):
            await worker.estimate("city")

    async def odd(request: web.Request) -> web.Response:
        return web.json_response({"hello": request.path})

    async def away(_: web.Request) -> web.Response:
        raise web.HTTPFound("/elsewhere")

    app = web.Application()
    app.router.add_get("/api/collections", odd)
    app.router.add_get("/api/collections/city", away)
    async with TestServer(app) as server, connect(str(server.make_url("/"))) as worker:
        with pytest.raises(NotAWorkerError, match="answer of a worker of this version"):
            await worker.collections()
        with pytest.raises(NotAWorkerError, match="got HTTP status 404"):
            await worker.status("city")
        with pytest.raises(NotAWorkerError, match="got HTTP status 302"):
            await worker.collection("city")
    async with connect(f"http://127.0.0.1:{free_ports(1)[0]}") as worker:
        with pytest.raises(UnreachableError, match="no worker answers at"):
            await worker.collections()
    for url in ("localhost:6066", "ftp://x"):
        with pytest.raises(AddressError, match="expected a URL such as"):
            async with connect(url):
                pass


@pytest.mark.slow
async def test_https_that_fails_says_why(tmp_path: Path) -> None:
    skip_without_openssl()
    made = make_certificates(tmp_path)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(made.broker)
    secured = TestServer(web.Application(), scheme="https")
    await secured.start_server(ssl=tls)
    try:
        async with connect(str(secured.make_url("/"))) as worker:
            with pytest.raises(UnreachableError, match="its certificate is not trusted: unable"):
                await worker.collections()
    finally:
        await secured.close()
    async with TestServer(web.Application()) as server:
        plain = str(server.make_url("")).rstrip("/")
        async with connect(plain.replace("http:", "https:")) as worker:
            with pytest.raises(UnreachableError, match=f"something else: is it {plain}[?]"):
                await worker.collections()


async def test_a_silent_server_times_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session, "PATIENCE_SECONDS", 0.1)
    silent = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{silent.getsockname()[1]}"
    with silent:
        async with connect(url) as worker, asyncio.timeout(60):
            with pytest.raises(UnreachableError, match=r"has not answered for 0\.1 s: is it a"):
                await worker.status("city")
        async with connect(url, timeout_seconds=0.2) as worker, asyncio.timeout(60):
            with pytest.raises(UnreachableError, match=r"has not answered for 0\.2 s: is it a"):
                await worker.estimate("city")


async def test_the_token_is_sent_and_appears_in_no_message(pipeline: Pipeline) -> None:
    app = build_http(pipeline, access=Access(token=TOKEN.encode()))
    async with TestServer(app) as server:
        url = str(server.make_url("/"))
        async with connect(url, token=TOKEN) as worker:
            assert len(await worker.collections()) == 3
        for wrong in (None, "some-other-token-that-is-wrong"):
            async with connect(url, token=wrong) as worker:
                with pytest.raises(TokenRefusedError) as refused:
                    await worker.collections()
                assert refused.value.status == 401
                assert "wrong" not in str(refused.value)
