"""The live page: its files are served from this host alone, under a strict policy."""

import hashlib
import posixpath
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import get_args

from aiohttp.test_utils import TestClient, TestServer

from ldpstream.agents.web import build_http, page
from ldpstream.agents.web.page import load_assets
from ldpstream.estimators.bounds.options import Method
from tests.stream.serving import CITY, serve_collections

OWN = re.compile(r"(page\.css|index\.html|icon\.svg|js/[a-z-]+\.js)")
"""Names of files that are written here, unlike vendored ones."""


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


def scripts() -> dict[str, str]:
    return {
        asset.name: asset.body.decode()
        for asset in load_assets().values()
        if asset.name.startswith("js/")
    }


def modules() -> set[str]:
    """Return what scripts import, as paths within the page's folder."""
    return {
        posixpath.normpath(posixpath.join(posixpath.dirname(name), module))
        for name, text in scripts().items()
        for module in re.findall(r'"(\.\.?/[\w/-]+\.js)"', text)
    }


async def test_the_page_and_all_that_it_loads_are_served() -> None:
    async with TestClient(TestServer(build_http(serve_collections({"city": CITY})))) as client:
        answer = await client.get("/")
        assert answer.status == 200
        assert (answer.content_type, answer.charset) == ("text/html", "utf-8")
        types = {}
        for link in (link for link in parse().loaded if not link.startswith("#")):
            loaded = await client.get(f"/{link}")
            assert loaded.status in (200, 503), link
            types[link] = loaded.content_type
        assert types["page/js/main.js"] == "text/javascript"
        assert types["page/page.css"] == "text/css"
        assert types["page/icon.svg"] == "image/svg+xml"
        assert types["page/vendor/uplot/uplot.iife.min.js"] == "text/javascript"
        assert types["page/vendor/uplot/LICENSE"] == "text/plain"
        for module in modules():
            loaded = await client.get(f"/page/{module}")
            assert loaded.status == 200, module


def test_no_module_and_no_stylesheet_is_left_over() -> None:
    assert not [name for name in load_assets() if name.startswith("css/")]
    assert modules() | {"js/main.js", "js/theme-choice.js"} == set(scripts())


def test_the_vendored_files_are_those_of_the_readme() -> None:
    folder = Path(page.__file__).parent / "vendor"
    rows = re.findall(r"\| `([\w.]+)` \| `([0-9a-f]{64})` \|", (folder / "README.md").read_text())
    assert {name for name, _ in rows} == {file.name for file in (folder / "uplot").iterdir()}
    for name, digest in rows:
        assert hashlib.sha256((folder / "uplot" / name).read_bytes()).hexdigest() == digest
    assert "MIT" in (folder / "uplot" / "LICENSE").read_text()


async def test_the_policy_allows_this_host_and_nothing_else() -> None:
    async with TestClient(TestServer(build_http(serve_collections({"city": CITY})))) as client:
        for path in ("/", "/page/js/main.js", "/api/collections", "/api/nothing"):
            headers = (await client.get(path)).headers
            policy = dict(
                part.strip().split(" ", 1) for part in headers["Content-Security-Policy"].split(";")
            )
            assert policy["default-src"] == "'none'"
            assert policy["worker-src"] == policy["script-src"] == policy["connect-src"] == "'self'"
            assert policy["frame-ancestors"] == "'none'"
            assert set(policy.values()) <= {"'none'", "'self'"}
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert "Access-Control-Allow-Origin" not in headers


def test_the_page_keeps_to_the_policy() -> None:
    """Nothing is inline or from another host, and no markup is made from data."""
    links = parse()
    assert links.inline == []
    assert "page/js/main.js" in links.loaded
    assert all(not re.match(r"[a-z]+:|/", link) for link in links.loaded)
    own = [asset for asset in load_assets().values() if OWN.fullmatch(asset.name)]
    assert len(own) > 20
    for asset in own:
        text = asset.body.decode()
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text), asset.name
        assert not re.search(r"innerHTML|insertAdjacentHTML|document\.write|\beval\(", text)
        assert "new Function" not in text


def test_the_scripts_find_every_element_that_they_use() -> None:
    links = parse()
    text = "\n".join(scripts().values())
    used = set(re.findall(r'(?:element|tableOf|select|tile|list)\("([a-z-]+)"', text))
    assert len(used) > 40
    assert used <= set(links.ids), used - set(links.ids)
    assert len(set(links.ids)) == len(links.ids)
    for view in re.findall(r'id: "([a-z]+)",', text):
        assert {view, f"tab-{view}"} <= set(links.ids)


def test_open_windows_are_asked_for_with_anytime_bounds() -> None:
    script = scripts()["js/bounds.js"]
    assert 'const WATCHED = "anytime";' in script
    assert "anytime" in get_args(Method)
    assert "const own = window.final || collection.method.startsWith(WATCHED);" in script
    assert "return own || !isOffered(collection, WATCHED) ? collection.method : WATCHED;" in script
    assert "at every moment of the window at once" in script


def test_every_method_can_be_chosen() -> None:
    page_text = load_assets()["index.html"].body.decode()
    choices = re.search(r'id="method">(.*?)</select>', page_text, re.DOTALL)
    assert choices is not None
    assert set(re.findall(r'value="([a-z-]*)"', choices[1])) == {"", *get_args(Method)}
