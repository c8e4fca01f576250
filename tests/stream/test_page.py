"""The live page: served from this host alone, under a strict policy, with what its script asks."""

import re
from html.parser import HTMLParser
from typing import get_args

from aiohttp.test_utils import TestClient, TestServer

from ldpstream.agents.http import build_http
from ldpstream.agents.page import load_assets
from ldpstream.estimators.options import Method
from tests.stream.serving import CITY, serve_collections


class Links(HTMLParser):
    """Collects what a page loads, its ids, and anything inline."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.ids: list[str] = []
        self.inline: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("src", "href") and value is not None:
                self.loaded.append(value)
            if name == "id" and value is not None:
                self.ids.append(value)
            if name == "style" or name.startswith("on"):
                self.inline.append(f"{tag} {name}")
        if tag == "style" or (tag == "script" and "src" not in dict(attrs)):
            self.inline.append(tag)


def parse() -> Links:
    links = Links()
    links.feed(load_assets()["index.html"].body.decode())
    return links


async def test_the_page_and_all_that_it_loads_are_served() -> None:
    async with TestClient(TestServer(build_http(serve_collections({"city": CITY})))) as client:
        answer = await client.get("/")
        assert answer.status == 200
        assert (answer.content_type, answer.charset) == ("text/html", "utf-8")
        types = {}
        for link in parse().loaded:
            loaded = await client.get(f"/{link}")
            assert loaded.status in (200, 503), link
            types[link] = loaded.content_type
        assert types["page/page.js"] == "text/javascript"
        assert types["page/page.css"] == "text/css"
        assert types["page/icon.svg"] == "image/svg+xml"


async def test_the_policy_allows_this_host_and_nothing_else() -> None:
    async with TestClient(TestServer(build_http(serve_collections({"city": CITY})))) as client:
        for path in ("/", "/page/page.js", "/api/collections", "/api/nothing"):
            headers = (await client.get(path)).headers
            policy = dict(
                part.strip().split(" ", 1) for part in headers["Content-Security-Policy"].split(";")
            )
            assert policy["default-src"] == "'none'"
            assert policy["script-src"] == policy["connect-src"] == "'self'"
            assert policy["frame-ancestors"] == "'none'"
            assert set(policy.values()) <= {"'none'", "'self'"}
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert "Access-Control-Allow-Origin" not in headers


def test_the_page_keeps_to_the_policy() -> None:
    """Nothing inline, nothing of another host, no markup made from data."""
    links = parse()
    assert links.inline == []
    assert all(not re.match(r"[a-z]+:|/", link) for link in links.loaded)
    for asset in load_assets().values():
        text = asset.body.decode()
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text), asset.name
        assert "innerHTML" not in text
        assert "eval(" not in text


def test_the_script_finds_every_element_that_it_uses() -> None:
    links = parse()
    script = load_assets()["page.js"].body.decode()
    used = set(re.findall(r'(?:element|choice|say|offer)\("([a-z-]+)"', script))
    used |= {name for pair in re.findall(r'fill\("([a-z]+)", "([a-z-]+)"', script) for name in pair}
    assert len(used) > 8
    assert used <= set(links.ids)
    assert len(set(links.ids)) == len(links.ids)


def test_open_windows_are_asked_for_with_bounds_that_may_be_watched() -> None:
    script = load_assets()["page.js"].body.decode()
    assert 'const WATCHED = "anytime";' in script
    assert "anytime" in get_args(Method)
    assert "!shown?.final && !method.startsWith(WATCHED) ? `&method=${WATCHED}`" in script
    assert "at every moment of the window at once" in script
