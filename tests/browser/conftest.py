"""One browser for each process of tests, one server of examples for each module, and pages.

Errors of a page fail its test. A browser belongs to the event loop that it was started in, so all
of these tests have one loop.
"""

from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, expect

from tests.browser.chromium import need_chromium, start_chromium
from tests.browser.showing import show_collections
from tests.processes import PATIENCE_SECONDS
from tests.stream.conftest import patient_proofs
from tests.stream.serving import Pipeline, serve

__all__ = ["patient_proofs"]

PATIENCE_MS = 1_000 * PATIENCE_SECONDS
expect.set_options(timeout=PATIENCE_MS)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """Give a browser with an empty profile."""
    async with start_chromium(need_chromium()) as started:
        yield started


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def pipeline() -> Pipeline:
    """Give the collections that `url` serves."""
    return show_collections()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def url(pipeline: Pipeline) -> AsyncIterator[str]:
    """Serve collections of every kind."""
    async with serve(pipeline) as started:
        yield started


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def context(browser: Browser) -> AsyncIterator[BrowserContext]:
    """Give the context of a module's pages.

    One stays open: a page in a context without another takes twice the time of a core to load.
    """
    made = await browser.new_context(viewport={"width": 1280, "height": 900})
    made.set_default_timeout(PATIENCE_MS)
    await made.new_page()
    try:
        yield made
    finally:
        await made.close()


@pytest_asyncio.fixture(loop_scope="session")
async def page(context: BrowserContext) -> AsyncIterator[Page]:
    """Give a page, with nothing stored; errors of its scripts and breaches of the policy fail."""
    opened = await context.new_page()
    said: list[str] = []
    opened.on("pageerror", lambda error: said.append(str(error)))

    def note(kind: str, text: str) -> None:
        # Refusals and connections that fail are what some tests are about.
        if kind == "error" and not text.startswith("Failed to load resource"):
            said.append(text)

    opened.on("console", lambda message: note(message.type, message.text))
    yield opened
    # A test may end before the page has got the last answer of its routes.
    await opened.unroute_all(behavior="ignoreErrors")
    await opened.evaluate("() => { try { localStorage.clear() } catch { /* about:blank */ } }")
    await opened.close()
    assert said == []
