"""The live page: its files are served from this host alone, under a strict policy."""

import hashlib
import os
import posixpath
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import get_args

import pytest
from aiohttp.test_utils import TestClient, TestServer

from ldpstream.agents.web import build_http, page
from ldpstream.agents.web.page import load_assets, load_modules
from ldpstream.agents.web.page.bundle import bundle_modules
from ldpstream.estimators.bounds.options import Method
from tests.stream.serving import CITY, serve_collections

IMMUTABLE = "public, max-age=31536000, immutable"


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
    return load_modules()


def modules() -> set[str]:
    """Return what scripts import, as paths within the page's folder."""
    return {
        posixpath.normpath(posixpath.join(posixpath.dirname(name), module))
        for name, text in scripts().items()
        for module in re.findall(r'"(\.\.?/[\w/-]+\.js)"', text)
    }


def test_the_page_is_the_same_in_every_locale():
    code = "from ldpstream.agents.web import page; print(page.load_assets()['index.html'].digest)"
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    digest = subprocess.check_output(
        [sys.executable, "-c", code], env={**os.environ, **ascii_only}, text=True
    )
    assert digest.strip() == load_assets()["index.html"].digest


@pytest.mark.parametrize(
    ("accepted", "packed"),
    [
        ("gzip;q=0", False),
        ("br, gzip; q=0.000", False),
        ("gzip;q=0, *", False),
        ("*;q=0", False),
        ("br", False),
        ("", False),
        ("GZIP;q=0.5", True),
        ("br, *", True),
    ],
)
async def test_what_a_client_refuses_is_not_sent_packed(accepted: str, packed: bool) -> None:
    async with TestClient(TestServer(build_http(serve_collections({"city": CITY})))) as client:
        for path in ("/", "/api/series", "/metrics"):
            answer = await client.get(path, headers={"Accept-Encoding": accepted})
            assert ("Content-Encoding" in answer.headers) is packed, path


async def test_the_page_and_all_that_it_loads_are_served_packed_and_kept_by_content() -> None:
    async with TestClient(TestServer(build_http(serve_collections({"city": CITY})))) as client:
        types = {}
        for link in ("", *(link for link in parse().loaded if link.startswith("page/"))):
            plain, packed = [
                await client.get(f"/{link}", headers={"Accept-Encoding": encoding})
                for encoding in ("identity", "gzip")
            ]
            assert plain.status == packed.status == 200, link
            assert await plain.read() == await packed.read()  # The client unpacks it.
            assert "Content-Encoding" not in plain.headers
            assert packed.headers["Content-Encoding"] == "gzip"
            assert int(packed.headers["Content-Length"]) < int(plain.headers["Content-Length"])
            types[re.sub(r"\.[0-9a-f]{16}", "", link)] = packed.content_type
            # Only the page itself is asked for again: all other names say what they hold.
            caching = IMMUTABLE if link else "no-cache"
            assert packed.headers["Cache-Control"] == caching
            assert packed.headers["Vary"] == "Accept-Encoding"
            digest = hashlib.blake2b(await packed.read(), digest_size=8).hexdigest()
            assert digest in link or not link
            again = await client.get(f"/{link}", headers={"If-None-Match": packed.headers["ETag"]})
            assert (again.status, await again.read()) == (304, b"")
        assert types == {
            "": "text/html",
            "page/icon.svg": "image/svg+xml",
            "page/page.css": "text/css",
            "page/theme-choice.js": "text/javascript",
            "page/uplot.iife.min.js": "text/javascript",
            "page/page.js": "text/javascript",
            "page/LICENSE": "text/plain",
        }


def test_no_module_and_no_stylesheet_is_left_over() -> None:
    folder = Path(page.__file__).parent
    styles = load_assets()["page.css"].body.decode()
    assert all(file.read_text() in styles for file in folder.glob("css/*.css"))
    assert modules() | {"js/main.js", "js/theme-choice.js"} == set(scripts())


@pytest.mark.parametrize(
    "text",
    [
        'import { two as one } from "./two.js";\n',
        'import * as one from "./two.js";\n',
        "export default 1;\n",
        "export let two = 1;\n",
        'import { two } from "./two.js";\nexport const two = 1;\n',
    ],
)
def test_statements_that_a_bundle_would_change_are_refused(text: str) -> None:
    texts = {"js/main.js": text, "js/two.js": "export const two = 2;\n"}
    with pytest.raises(ValueError, match=r"^js/main.js: expected named imports and unique exports"):
        bundle_modules(texts, "js/main.js")


def test_the_vendored_files_are_those_of_the_readme() -> None:
    folder = Path(page.__file__).parent / "vendor"
    rows = re.findall(r"\| `([\w.]+)` \| `([0-9a-f]{64})` \|", (folder / "README.md").read_text())
    assert {name for name, _ in rows} == {file.name for file in (folder / "uplot").iterdir()}
    for name, digest in rows:
        assert hashlib.sha256((folder / "uplot" / name).read_bytes()).hexdigest() == digest
    assert "MIT" in (folder / "uplot" / "LICENSE").read_text()


def test_the_page_keeps_to_the_policy() -> None:
    """Nothing is inline or from another host, and no markup is made from data."""
    links = parse()
    assert links.inline == []
    assert all(not re.match(r"[a-z]+:|/", link) for link in links.loaded)
    own = {
        name: asset.body.decode() for name, asset in load_assets().items() if "uplot" not in name
    }
    for name, text in (own | scripts()).items():
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text), name
        assert not re.search(
            r"innerHTML\s*=(?!=)|insertAdjacentHTML|document\.write|\beval\(", text
        )
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


def test_every_method_can_be_chosen() -> None:
    page_text = load_assets()["index.html"].body.decode()
    choices = re.search(r'id="method">(.*?)</select>', page_text, re.DOTALL)
    assert set(re.findall(r'value="([a-z-]*)"', choices[1])) == {"", *get_args(Method)}
