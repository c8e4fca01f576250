"""The documentation as a site, as `make docs` builds it: whole pages, linked and searchable."""

import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

import pytest
from playwright.async_api import Browser, expect

from tests import missing
from tests.house.scripts import script
from tests.pages import ROOT

TOOLS: Final = Path(sys.executable).parents[1] / "tools" / "bin"
SHORTEST: Final = 200
"""Characters of a page that is not empty."""


class Page(HTMLParser):
    """The text, links and anchors of a page, what it loads, and the links that its text cites."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.file = file
        self.links: list[str] = []
        self.cited: list[str] = []
        self.within_article = False
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.html = file.read_text("utf-8")
        self.feed(self.html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value is not None}
        self.within_article |= tag == "article"
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
            # A heading's link to itself is no mention of the page.
            if self.within_article and not given["href"].startswith("#"):
                self.cited.append(given["href"])
        if "src" in given or (tag == "link" and given.get("rel") == "stylesheet"):
            self.loaded.append(given.get("src") or given["href"])

    def handle_endtag(self, tag: str) -> None:
        self.within_article &= tag != "article"

    @cached_property
    def article(self) -> str:
        """Its text without navigation, as a reader sees it."""
        found = re.search("<article.*?</article>", self.html, re.DOTALL)
        return "" if found is None else re.sub("<[^>]*>", "", found[0])

    def targets(self, links: list[str]) -> Iterator[tuple[Path, str]]:
        """Yield the files and anchors that links lead to, but for those of other sites."""
        for link in links:
            path, _, anchor = link.partition("#")
            if not re.match("[a-z]+:", link):
                yield (self.file.parent / path).resolve() if path else self.file, anchor


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site."""
    if not (TOOLS / "mkdocs").exists():
        missing.skip(f"{TOOLS} has no mkdocs: `make docs` installs it")
    folder = tmp_path_factory.mktemp("site")
    subprocess.run([sys.executable, ROOT / ".ci" / "docs.py", TOOLS, folder], check=True)
    (built,) = folder.glob("[0-9]*")
    return built


@pytest.fixture(scope="module")
def every_page(site: Path) -> dict[Path, Page]:
    """Read all pages but those that only lead to others."""
    read = {file.resolve(): Page(file.resolve()) for file in site.rglob("*.html")}
    return {file: page for file, page in read.items() if "http-equiv" not in page.html}


def test_no_page_is_empty_or_shows_how_it_was_written(every_page: dict[Path, Page]):
    assert len(every_page) > 40
    for file, page in every_page.items():
        if file.name == "404.html" or "example" in file.parts:
            continue
        assert len(page.article) > SHORTEST, file
        # A fence that Markdown did not take for one, and a table or a link that is none.
        assert not re.search(r"```|\n\|[ -]|\]\([\w./#-]+\)", page.article), file


def test_every_link_leads_to_its_page_and_heading(every_page: dict[Path, Page], site: Path):
    lost = []
    for file, page in every_page.items():
        if file.name == "404.html":
            continue
        for target, anchor in page.targets(page.links):
            within = not anchor or target not in every_page or anchor in every_page[target].anchors
            if target.is_relative_to(site) and not (target.exists() and within):
                lost.append(f"{file.relative_to(site)}: {target.relative_to(site)}#{anchor}")
    assert lost == []


def test_every_page_is_reached_by_reading(every_page: dict[Path, Page], site: Path):
    """From the home page by what texts cite; pages made from the code by the navigation alone."""
    home = site.resolve() / "index.html"
    reached, ahead = {home}, [every_page[home]]
    while ahead:
        page = ahead.pop()
        new = {file for file, _ in page.targets(page.cited)} & every_page.keys() - reached
        reached |= new
        ahead += [every_page[file] for file in new]
    made = {site.resolve() / Path(one).with_suffix(".html") for one in script("reference").PAGES}
    shown = {file for file in every_page if file.name != "404.html" and "example" not in file.parts}
    assert {str(file.relative_to(site.resolve())) for file in shown - reached - made} == set()
    assert made <= {file for file, _ in every_page[home].targets(every_page[home].links)}


def test_pages_explain_each_term_once_where_it_is_first_used(every_page: dict[Path, Page]):
    found = 0
    for file, page in every_page.items():
        explained = re.findall(r'<a class="term" href="[^"#]*#([^"]+)"', page.html)
        assert len(explained) == len({*explained}), file
        found += len(explained)
    assert found > 10 * len(every_page) / 2


def test_old_addresses_lead_on(site: Path):
    moved = [file for file in site.rglob("*.html") if "http-equiv" in file.read_text("utf-8")]
    assert len(moved) > 25
    for file in moved:
        to = re.findall(r'[="]([\w./-]+\.html)"', file.read_text("utf-8"))
        assert to
        assert all((file.parent / one).exists() for one in to), file


def test_nothing_is_loaded_from_elsewhere(every_page: dict[Path, Page]):
    loaded = {one for page in every_page.values() for one in page.loaded}
    assert loaded
    assert not [one for one in loaded if re.match("(https?:)?//", one)]


@pytest.mark.asyncio(loop_scope="session")
async def test_the_search_finds_pages_from_disk(browser: Browser, site: Path):
    context = await browser.new_context(offline=True)
    page = await context.new_page()
    await page.goto((site / "index.html").as_uri())
    await page.locator(".md-search__input").fill("quantile")
    await expect(page.locator(".md-search-result__item").first).to_be_visible()
    await context.close()


@pytest.mark.asyncio(loop_scope="session")
async def test_figures_can_be_read_on_a_phone(browser: Browser, site: Path):
    context = await browser.new_context(viewport={"width": 390, "height": 844})
    page = await context.new_page()
    await page.goto((site / "docs" / "concepts" / "estimates-and-bounds.html").as_uri())
    figure = await page.locator('img[src$=".svg"]').first.bounding_box()
    assert figure is not None
    assert figure["width"] > 600
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    await context.close()
