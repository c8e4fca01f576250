"""Who may read: tokens, host names, headers, the log; and what is checked before serving."""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientConnectorError, ClientSession
from aiohttp.test_utils import TestClient, TestServer

from ldpstream.agents.config import ConfigError, read_config
from ldpstream.agents.config.secret import EnvironmentSecret, FileSecret, GivenSecret
from ldpstream.agents.engine.waits import Wait
from ldpstream.agents.web import HttpUnavailableError, build_http
from ldpstream.agents.web.addresses import is_loopback
from ldpstream.agents.web.operations import OPERATIONS
from ldpstream.agents.web.page import load_assets
from ldpstream.agents.web.requests import Access, TokenError
from tests.certificates import make_certificates, skip_without_openssl
from tests.stream.asking import BEARER, TOKEN, Client, ask
from tests.stream.serving import CITY, Pipeline, serve, serve_collections

PUBLIC = {"/", "/healthz", "/readyz"}
PAGE_FILES = [f"/page/{load_assets()[name].name}" for name in ("page.css", "page.js")]


@pytest.fixture
async def client(pipeline: Pipeline) -> AsyncIterator[Client]:
    """A client of an application that needs a token."""
    app = build_http(pipeline, access=Access(token=TOKEN.encode()))
    async with TestClient(TestServer(app)) as made:
        yield made


def paths() -> list[str]:
    read = [one.path for one in OPERATIONS if one.method == "get"]
    filled = [path.format(name="city", start="2026-11-21T10:00:00Z") for path in read]
    return ["/openapi.json", *filled]


@pytest.mark.parametrize("path", sorted(set(paths()) - PUBLIC))
async def test_every_path_with_data_needs_the_token(client: Client, path: str) -> None:
    for headers in (
        {},
        {"Authorization": ""},
        {"Authorization": TOKEN},
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": f"Bearer {TOKEN[:-1]}"},
        {"Authorization": f"Bearer {TOKEN}x"},
        {"Authorization": "Bearer \u00fcber-token-of-some-length"},
    ):
        answer = await client.get(path, headers=headers)
        assert answer.status == 401, headers
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert list(await answer.json()) == ["error"]
        assert TOKEN not in await answer.text()
    assert (await client.get(path, params={"token": TOKEN})).status == 401
    answer = await client.get(path, headers=BEARER)
    # No file of shapes is configured.
    assert answer.status == (404 if path.endswith("/geojson") else 200)
    answer.close()


async def test_asking_in_a_body_needs_the_token(client: Client) -> None:
    assert (await client.post("/api/collections/city/estimate", json={})).status == 401
    answer = await client.post("/api/collections/city/estimate", json={}, headers=BEARER)
    assert answer.status == 200


async def test_probes_and_the_page_need_no_token_and_show_no_data(client: Client) -> None:
    assert await ask(client, "/healthz") == {"status": "ok"}
    for asset in ("/", *PAGE_FILES):
        answer = await client.get(asset)
        assert answer.status == 200
        assert not re.search(r"\bcity\b", await answer.text())
    assert await ask(client, "/readyz") == {"ready": True, "reasons": [], "waits": []}


async def test_reasons_for_not_being_ready_need_the_token() -> None:
    pipeline = serve_collections({"city": CITY}, read=False)
    app = build_http(pipeline, access=Access(token=TOKEN.encode()))
    async with TestClient(TestServer(app)) as client:
        assert await ask(client, "/readyz", 503) == {"ready": False, "reasons": [], "waits": []}
        answer = await client.get("/readyz", headers=BEARER)
        assert answer.status == 503
        assert "city" in (await answer.json())["reasons"][0]


async def test_what_windows_wait_for_needs_the_token_and_leaves_a_worker_ready() -> None:
    pipeline = serve_collections({"city": CITY})
    pipeline.collections["city"].waits = (Wait(1, 60_000, 7.0, "12 of its messages are unread"),)
    app = build_http(pipeline, access=Access(token=TOKEN.encode()))
    async with TestClient(TestServer(app)) as client:
        assert await ask(client, "/readyz") == {"ready": True, "reasons": [], "waits": []}
        answer = await client.get("/readyz", headers=BEARER)
        (said,) = (await answer.json())["waits"]
        assert said.startswith("city: windows up to 1970-01-01T00:01:00Z wait for partition 1 for")
        assert said.endswith("for 7 s longer than usual: 12 of its messages are unread")
        answer = await client.get("/api/collections/city/status", headers=BEARER)
        assert [
            (one["wait"], one["wait_seconds"]) for one in (await answer.json())["partitions"]
        ] == [
            (None, 0.0),
            ("12 of its messages are unread", 7.0),
        ]
        answer = await client.get("/metrics", headers=BEARER)
        wait = 'ldpstream_wait_seconds{collection="city",partition="1"} 7.0'
        assert wait in await answer.text()


@pytest.mark.parametrize(
    ("host", "own"),
    [
        ("127.0.0.1:6066", True), ("localhost", True), ("LOCALHOST:1", True), ("[::1]:80", True),
        ("192.0.2.7:6066", True), ("evil.example", False), ("127.0.0.1.evil.example", False),
        ("localhost.evil.example:6066", False), ("", False), ("a:b:c", False),
    ],
)  # fmt: skip
async def test_host_names_of_other_sites_do_not_reach_a_loopback_address(
    host: str, own: bool
) -> None:
    """A site may let its own name resolve to this machine, but the header shows that name."""
    app = build_http(serve_collections({"city": CITY}), access=Access(local=True))
    async with TestClient(TestServer(app)) as client:
        for path in ("/api/collections", "/", "/nothing", "/healthz"):
            answer = await client.get(path, headers={"Host": host})
            assert (answer.status != 421) == own
    app = build_http(
        serve_collections({"city": CITY}), access=Access(local=True, token=TOKEN.encode())
    )
    async with TestClient(TestServer(app)) as client:
        answer = await client.get("/api/collections", headers=BEARER | {"Host": host})
        assert answer.status == 200


async def test_every_answer_has_the_headers_of_a_strict_site(client: Client) -> None:
    for path, status in (
        ("/", 200), (PAGE_FILES[0], 200), ("/api/collections", 401), ("/nothing", 404),
        ("/healthz", 200), ("/api/collections/city/estimate?x=1", 401),
    ):  # fmt: skip
        answer = await client.get(path)
        assert answer.status == status
        headers = answer.headers
        told = (one.strip().split(" ", 1) for one in headers["Content-Security-Policy"].split(";"))
        policy = dict(told)
        assert policy["default-src"] == policy["frame-ancestors"] == "'none'"
        assert policy["worker-src"] == policy["script-src"] == policy["connect-src"] == "'self'"
        assert set(policy.values()) <= {"'none'", "'self'"}
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
        assert headers["X-Frame-Options"] == "DENY"
        assert "Access-Control-Allow-Origin" not in headers
    answer = await client.get("/api/collections/city/events", headers=BEARER)
    assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'; ")
    answer.close()


def test_the_script_keeps_the_token_for_the_tab_and_out_of_addresses() -> None:
    script = (Path(__file__).parents[3] / "agents/web/page/js/api.js").read_text()
    assert "Authorization: `Bearer ${token()}`" in script
    assert "sessionStorage" in script
    assert not re.search(r"localStorage|cookie|location|[?&]token", script)


async def test_the_log_has_no_addresses_and_no_malformed_requests(
    pipeline: Pipeline, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a defect of ours")

    monkeypatch.setattr("ldpstream.agents.web.requests.check_names", broken)
    async with serve(pipeline) as url:
        host, port = url.removeprefix("http://").split(":")
        for sent in (b"\x16\x03\x01 no HTTP\r\n\r\n", b"GET /\xff HTTP/1.1\r\n\r\n"):
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(sent)
            assert b" 400 " in await reader.readline()
            writer.close()
            await writer.wait_closed()
        assert caplog.records == []
        async with ClientSession() as session:
            answer = await session.get(f"{url}/api/collections")
            assert answer.status == 500
            assert "defect" not in await answer.text()
    (record,) = caplog.records
    assert record.getMessage() == "a request failed: /api/collections"
    assert "127.0.0.1" not in caplog.text.split("Traceback")[0]


@pytest.mark.parametrize("token", ["short", "x" * 15, "with a space in the middle", "ü" * 20, ""])
def test_weak_tokens_are_refused_without_showing_them(token: str) -> None:
    with pytest.raises(TokenError) as refused:
        Access(token=token.encode())
    assert str(refused.value) == "expected at least 16 visible ASCII characters, no space"


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True), ("127.9.9.9", True), ("localhost", True), ("::1", True),
        ("[::1]", True), ("0.0.0.0", False), ("::", False), ("192.168.0.1", False),
        ("example.org", False), ("localhost.example.org", False),
    ],
)  # fmt: skip
def test_loopback_addresses_are_recognised(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


async def test_an_address_that_others_reach_needs_a_token(pipeline: Pipeline) -> None:
    with pytest.raises(HttpUnavailableError, match=r"worker\.token: expected a token, because"):
        async with serve(pipeline, host="0.0.0.0"):
            pass
    async with serve(pipeline, host="0.0.0.0", open_to_everybody=True) as url:
        port = url.rpartition(":")[2]
        async with ClientSession() as session:
            answer = await session.get(f"http://127.0.0.1:{port}/api/collections")
            assert answer.status == 200
    async with (
        serve(pipeline, host="0.0.0.0", token=GivenSecret(TOKEN)) as url,
        ClientSession(f"http://127.0.0.1:{url.rpartition(':')[2]}/") as session,
    ):
        assert (await session.get("api/collections")).status == 401
        assert (await session.get("api/collections", headers=BEARER)).status == 200


async def test_a_token_that_cannot_be_read_is_reported_at_the_start(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    short = tmp_path / "token"
    short.write_text("too-short\n")
    for secret, why in (
        (EnvironmentSecret("NOWHERE", {}), "expected the environment variable NOWHERE"),
        (FileSecret(tmp_path / "none"), f"cannot read {tmp_path}/none"),
        (FileSecret(short), "expected at least 16 visible ASCII characters"),
    ):
        with pytest.raises(HttpUnavailableError) as refused:
            async with serve(pipeline, token=secret):
                pass
        assert str(refused.value).startswith(f"worker.token: {why}")
        assert "too-short" not in str(refused.value)


@pytest.mark.slow
async def test_with_a_certificate_https_is_served(pipeline: Pipeline, tmp_path: Path) -> None:
    skip_without_openssl()
    made = make_certificates(tmp_path)
    both = made.broker
    trusting = ssl.create_default_context(cafile=made.authority)
    strange = ssl.create_default_context(cafile=made.stranger)
    token = GivenSecret(TOKEN)
    async with (
        serve(pipeline, token=token, certificate=both, key=both) as url,
        ClientSession() as session,
    ):
        assert url.startswith("https://127.0.0.1:")
        asked = f"{url}/api/collections"
        assert (await session.get(asked, ssl=trusting, headers=BEARER)).status == 200
        with pytest.raises(ClientConnectorError):
            await session.get(asked, ssl=strange, headers=BEARER)
    for pair, why in (
        ((both, tmp_path / "none"), f"worker.key: cannot read {tmp_path}/none: No such file"),
        ((tmp_path, both), f"worker.certificate: cannot read {tmp_path}: Is a directory"),
        ((made.client, made.client_key), "worker.certificate, worker.key: expected a chain"),
        ((both, made.client_key), "worker.certificate, worker.key: expected a chain"),
    ):
        with pytest.raises(HttpUnavailableError, match=why):
            async with serve(pipeline, certificate=pair[0], key=pair[1]):
                pass


def configured(worker: dict[str, Any], tmp_path: Path) -> Any:
    tables = {"worker": worker, "collection": {"city": CITY}}
    return read_config(tables, base=tmp_path, environment={"READ": TOKEN}).worker


def test_the_configuration_says_where_the_token_is(tmp_path: Path) -> None:
    assert configured({}, tmp_path).token is None
    found = configured({"token": {"env": "READ"}}, tmp_path)
    assert found.token.reveal() == TOKEN
    assert TOKEN not in repr(found)
    assert TOKEN not in repr(configured({"token": TOKEN}, tmp_path))
    for worker, path, problem in (
        ({"token": 7}, "worker.token", "expected a string, { env"),
        ({"token": {"env": "A", "file": "B"}}, "worker.token", "expected a string, { env"),
        ({"certificate": "a.pem"}, "worker.key", "expected certificate and key, or neither"),
        ({"key": "a.pem"}, "worker.certificate", "expected certificate and key, or neither"),
        ({"open_to_everybody": "yes"}, "worker.open_to_everybody", "expected true or false"),
    ):
        with pytest.raises(ConfigError) as refused:
            configured(worker, tmp_path)
        assert refused.value.path == path
        assert refused.value.problem.startswith(problem)
