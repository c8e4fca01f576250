"""Errors of `ldpstream query` and `ldpstream status`: refusals, and servers without an answer."""

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from ldpstream.agents.web import build_http
from ldpstream.agents.web.requests import Access
from tests.stream.asking import TOKEN
from tests.stream.querying import five_minutes, ldpstream
from tests.stream.serving import CITY, Pipeline, serve_collections


@pytest.fixture
def pipeline() -> Pipeline:
    return five_minutes()


async def test_refusals_are_one_plain_message(url: str) -> None:
    for arguments, code, named in [
        (("query", url, "nowhere"), 2, "no such collection; expected one of city, rides, ages"),
        (("query", url, "city", "--top", "x"), 2, "top: expected a whole number"),
        (("query", url, "city", "--from", "soon"), 2, "from: expected a time"),
        (("query", url, "city", "--last", "1", "--all"), 2, "--last: expected --last or --all"),
        (("query", url, "city", "--last", "0"), 2, "--last"),
        (("query", url, "rides"), 1, "rides: no window with reports yet"),
        (("query", "localhost", "city"), 2, "expected a URL such as http://127.0.0.1:6066"),
        (("query", "http://127.0.0.1:1", "city"), 1, "no worker answers at http://127.0.0.1:1"),
        (("status", "http://127.0.0.1:1"), 1, "no worker answers at http://127.0.0.1:1"),
    ]:
        result = await ldpstream(*arguments)
        assert result.exit_code == code, arguments
        assert named in result.stderr
        assert len(result.stderr.splitlines()) == 1
        assert result.stdout == ""


async def test_a_server_that_is_no_worker_is_named_as_such() -> None:
    async with TestServer(web.Application()) as server:
        result = await ldpstream("status", str(server.make_url("/")))
    assert result.exit_code == 1
    assert "expected a worker, got HTTP status 404" in result.stderr


async def test_a_worker_that_is_not_ready_says_so() -> None:
    pipeline = serve_collections({"city": CITY}, read=False)
    async with TestServer(build_http(pipeline)) as server:
        base = str(server.make_url("/"))
        result = await ldpstream("query", base, "city")
        assert result.exit_code == 1
        assert "its state is still being read" in result.stderr
        result = await ldpstream("status", base)
        assert result.exit_code == 0
        assert "not ready" in result.stdout


async def test_a_worker_with_a_token(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    app = build_http(pipeline, access=Access(token=TOKEN.encode()))
    async with TestServer(app) as server:
        url = str(server.make_url("/"))
        for command in (("query", url, "city"), ("status", url)):
            monkeypatch.delenv("LDPSTREAM_TOKEN", raising=False)
            refused = await ldpstream(*command)
            assert refused.exit_code == 2
            assert "the worker wants a token: set LDPSTREAM_TOKEN" in refused.stderr
            monkeypatch.setenv("LDPSTREAM_TOKEN", "another-token-altogether")
            refused = await ldpstream(*command)
            assert "the worker wants another token" in refused.stderr
            assert "altogether" not in refused.stderr
            monkeypatch.setenv("LDPSTREAM_TOKEN", TOKEN)
            assert (await ldpstream(*command)).exit_code == 0
