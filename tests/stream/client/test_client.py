"""The typed client against a served pipeline: models, pages, specs and its documentation."""

import asyncio
import re
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from ldpstream.agents import client as api
from ldpstream.agents.client import (
    AddressError,
    Client,
    EstimateRequest,
    LinearRequest,
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
from ldpstream.mechanisms.base.times import format_time
from tests.certificates import make_certificates, skip_without_openssl
from tests.ports import free_ports
from tests.stream.asking import FIRST, TOKEN
from tests.stream.serving import CITY, MINUTE_MS, START_MS, Pipeline, serve_collections, visits


def minutes(documents: list[Any]) -> list[str]:
    return [one.window.start[11:16] for one in documents]


async def test_every_answer_is_a_model(worker: Client) -> None:
    assert [one.name for one in await worker.collections()] == ["city", "rides", "ages"]
    assert (await worker.collection("city")).values == 60
    assert (await worker.status("city")).counted == 800
    assert (await worker.readiness()).ready
    newest = await worker.estimate("city")
    assert (newest.n, newest.final, len(newest.distribution)) == (400, False, 5)
    asked = EstimateRequest(
        start=FIRST[0],
        end=FIRST[1],
        top=2,
        ranges=["0..1,0..4"],
        linear=[LinearRequest(name="one", weights=[1.0] * 60)],
    )
    document = await worker.estimate("city", asked)
    assert (document.final, len(document.distribution)) == (True, 2)
    assert (document.ranges[0].name, document.linear[0].mean) == ("0..1,0..4", 1.0)
    change = await worker.change("city", top=3, blocks=True, range=["downtown", "0..1,0..4"])
    assert (change.after.n, len(change.values), len(change.blocks)) == (400, 3, 4)
    assert [entry.name for entry in change.ranges] == ["downtown", "0..1,0..4"]
    series = await worker.series("city", top=2, points=10)
    assert (series.points.n, len(series.lines)) == ([400, 400], 2)


async def test_windows_come_page_by_page(worker: Client, pipeline: Pipeline) -> None:
    city = pipeline.collections["city"]
    for minute in range(2, 7):
        city.report(0, visits(minute, 5), times_ms=[START_MS + minute * MINUTE_MS] * 5)
    every = [f"10:0{i}" for i in range(7)]
    for page in (1, 2, 3, 100):
        assert minutes([one async for one in worker.windows("city", page=page)]) == every
        assert minutes(await worker.newest("city", 100, page=page)) == every
        assert minutes(await worker.newest("city", 4, page=page)) == every[3:]
        start, end = (format_time(START_MS + i * MINUTE_MS) for i in (1, 5))
        found = [one async for one in worker.windows("city", start=start, end=end, page=page)]
        assert minutes(found) == every[1:5]
        assert minutes(await worker.newest("city", 2, end=end, page=page)) == every[3:5]
    hopping = [one async for one in worker.windows("ages", page=1)]
    assert minutes(hopping) == ["09:59", "10:00"]
    assert [one async for one in worker.windows("rides")] == []


def test_the_package_exports_every_public_name() -> None:
    assert all(hasattr(api, name) for name in api.__all__)


async def test_the_program_of_the_documentation_runs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (Path(__file__).parents[3] / "docs/reference/http.md").read_text()
    (program,) = re.findall(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    modes = {
        "mechanism": "block-hadamard",
        "epsilon": 1.0,
        "domain": {"values": ["bus", "train", "walk", "car"]},
        "minimum": 1,
        "window": {"size": "1m"},
    }
    pipeline = serve_collections({"modes": modes})
    pipeline.collections["modes"].report(0, ["bus"] * 300, times_ms=[START_MS] * 300)
    async with TestServer(build_http(pipeline)) as server:
        here = program.replace("http://127.0.0.1:6066", str(server.make_url("/")))
        names: dict[str, Any] = {}
        exec(here.replace("asyncio.run(main())", ""), names)
        await names["main"]()
    said = capsys.readouterr().out
    assert said.startswith("bus ")
    assert "2026-11-21T10:00:00Z 300 False" in said


async def test_every_request_may_name_a_spec(worker: Client) -> None:
    own = {"fingerprint": (await worker.collection("city")).fingerprint}
    assert (await worker.estimate("city", **own)).fingerprint == own["fingerprint"]
    strange = {"fingerprint": "00" * 8}
    for ask in (
        lambda: worker.estimate("city", **strange),
        lambda: worker.status("city", **strange),
    ):
        with pytest.raises(RefusedError, match="fingerprint: expected one of "):
            await ask()


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
