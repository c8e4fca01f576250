"""The privacy view: what a device spends over time, and what is proved, by what the API answers."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Page, Route, expect

from tests.browser.looking import ask, change_answers, open_view
from tests.browser.showing import EACH
from tests.stream.serving import MINUTE_MS, START_MS, Pipeline, serve_collections

pytestmark = pytest.mark.asyncio(loop_scope="session")

_MODES: dict[str, Any] = {
    "mechanism": "randomized-response",
    "epsilon": 1.0,
    "domain": {"values": ["bus", "train", "walk"]},
    **EACH,
}
TABLES: dict[str, dict[str, Any]] = {
    "free": _MODES,
    "spread": {**_MODES, "spread": {"reports": 7, "horizon": "1d"}},
    "often": {**_MODES, "spread": {"reports": 100, "horizon": "1d", "rolling": True}},
    "overlap": {**_MODES, "window": {"size": "6m", "hop": "2m", "retention": "1h"}},
    "held": {**_MODES, "hold": {"windows": 30, "epsilon": 2.0}},
    "steps": {**_MODES, "mechanism": "l1-geometric", "domain": {"interval": [0, 100], "bins": 50}},
    "priors": {
        **_MODES,
        "mechanism": "lip",
        "prior": {"levels": 8},
        "domain": {"values": ["no", "yes"]},
    },
}
_LABELS = {"steps": 12.0, "priors": ["yes", 0.3]}
CERTIFICATE = "**/certificate?*"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def pipeline() -> Pipeline:
    """Give collections of each kind, with a final window and an open one."""
    served = serve_collections(TABLES)
    for name, one in served.collections.items():
        labels = [_LABELS.get(name, "bus")] * 200
        for minute in range(2):
            one.report(0, labels, times_ms=[START_MS + minute * MINUTE_MS] * 200)
        one.close(START_MS + MINUTE_MS)
    return served


async def pairs(page: Page, where: str) -> dict[str, str]:
    """Return the terms of a list and what is said of each."""
    found: list[list[str]] = await page.locator(f"{where} > div").evaluate_all(
        "all => all.map(one => [...one.children].map(part => part.innerText))"
    )
    return {name: " ".join(text.split()) for name, text in found}


def grouped(loss: str) -> str:
    """Return a loss with its whole part in groups of three digits."""
    return re.sub(r"^\d+", lambda whole: f"{int(whole[0]):,}", loss)


def said(spent: list[dict[str, Any]]) -> dict[str, str]:
    """Return losses over time as the page writes them."""
    return {one["over"]: f"{grouped(one['loss'])} {factor(one)}" for one in spent}


def factor(one: dict[str, Any]) -> str:
    """Return a factor as the page writes it."""
    return "no limit" if one["factor"] == "no limit" else f"factor {one['factor']}"


@pytest.mark.parametrize(
    ("name", "often", "free"),
    [
        ("free", "ε\u00a01 a report: one in each window of 1 min", True),
        ("overlap", "ε\u00a01 a report: one in each window of 2 min", True),
        ("held", "ε\u00a01 a report: one draw in an epoch of 30m", False),
        ("steps", "ε\u00a01 for each 2, a report: one in each window of 1 min", True),
        ("priors", "ε\u00a01 from a prior, a report: one in each window of 1 min", True),
    ],
)
async def test_what_is_spent_over_time_is_the_apis(
    page: Page, url: str, name: str, often: str, free: bool
) -> None:
    spent = (await ask(url, name))["privacy"]["spent"]
    await open_view(page, url, name, "privacy")
    assert await pairs(page, "#spent") == said(spent)
    assert spent[0]["over"] == "one report"
    assert await page.locator("p:has(> #spent-epsilon)").inner_text() == often
    await expect(page.locator("#spent-bar")).to_be_hidden()
    ledger = await page.locator("#spent-ledger").inner_text()
    assert ledger.startswith("Nothing here limits how often a device reports") == free
    pane = "2 min" if name == "overlap" else "1 min"
    assert f"repeats its report within {pane}" in ledger
    note = await page.locator("#spent-note").inner_text()
    assert f"A window here is {pane}" in note
    assert "a device without a ledger has no limit" in ledger


@pytest.mark.parametrize(("name", "parts"), [("spread", 7), ("often", 100)])
async def test_the_budget_of_a_period_is_a_bar_of_its_reports(
    page: Page, url: str, name: str, parts: int
) -> None:
    one, period, *rest = (await ask(url, name))["privacy"]["spent"]
    await open_view(page, url, name, "privacy")
    ends = await page.locator("#spent-bar .ends span").all_inner_texts()
    assert ends == [
        f"one report: {grouped(one['loss'])}",
        f"a period of 1d, the budget: {grouped(period['loss'])}",
        factor(one),
        factor(period),
    ]
    assert period["charges"] == parts
    assert await pairs(page, "#spent") == said(rest)
    ledger = await page.locator("#spent-ledger").inner_text()
    assert ledger.startswith("This holds where ledgers spread their budget as configured here")
    bar = page.locator("#spent-parts")
    part = await bar.evaluate("one => parseFloat(getComputedStyle(one).getPropertyValue('--part'))")
    assert part == pytest.approx(100 / parts)
    # Gaps between the parts, as long as there is room for them.
    mask = await bar.evaluate("one => getComputedStyle(one).maskImage")
    assert (mask != "none") == (parts < 48)


async def test_a_loss_that_is_not_added_up_is_not_shown(page: Page, url: str) -> None:
    def unknown(body: dict[str, Any]) -> None:
        for one in body["collections"]:
            one["privacy"]["spent"] = []

    await change_answers(page, "**/api/collections", unknown)
    await open_view(page, url, "spread", "privacy")
    await expect(page.locator("#spent-note")).to_contain_text("Not added up here")
    await expect(page.locator("#spent-bar")).to_be_hidden()
    assert await pairs(page, "#spent") == {}


@pytest.mark.parametrize(
    ("name", "worst"),
    [
        ("free", "worst factor found"),
        ("steps", "worst factor of a step"),
        ("priors", "worst change of a probability"),
    ],
)
async def test_what_is_proved_is_the_certificate_of_the_worker(
    page: Page, url: str, name: str, worst: str
) -> None:
    certificate = await ask(url, f"{name}/certificate")
    await open_view(page, url, name, "privacy")
    await expect(page.locator("#proof .good")).to_have_text("holds, in exact arithmetic")
    facts = await pairs(page, "#proof")
    assert facts[worst] == certificate["factor"]
    assert facts.get("worst factor of any two") == ("no limit" if name == "steps" else None)
    assert facts["beliefs"] == certificate["odds"][-1]["said"]
    assert facts["mechanism"] == certificate["mechanism"]
    assert facts["fingerprint"] == certificate["fingerprint"]
    assert facts["nothing shown below"] == "1 report"
    await expect(page.locator("#proved")).to_have_text("Policy✓ Policy proved")
    async with page.expect_download() as saving:
        await page.click("#save-proof")
    file = await saving.value
    assert file.suggested_filename == f"{name}-{certificate['fingerprint']}-certificate.json"
    text = await asyncio.to_thread(Path(await file.path()).read_text)
    assert json.loads(text) == certificate


async def test_nothing_is_called_proved_that_is_not(page: Page, url: str) -> None:
    """While it is being proved, where that is refused, where it fails, and of another."""
    certificate = await ask(url, "free/certificate")
    held = asyncio.Event()

    async def answer(route: Route) -> None:
        await held.wait()
        broken = {"pass": False, "violation": "values 0 and 1 at output 2"}
        await route.fulfill(json={**certificate, **broken})

    await page.route(CERTIFICATE, answer)
    await open_view(page, url, "free", "privacy")
    await expect(page.locator("#proof")).to_contain_text("being proved")
    await expect(page.locator("#proof-note")).to_contain_text("ldpstream certify free")
    await expect(page.locator("#save-proof")).to_be_hidden()
    assert await page.locator("#proved").is_hidden()
    held.set()
    failed = page.locator("#proof .alarm")
    await expect(failed).to_have_text("fails: values 0 and 1 at output 2")
    assert await page.locator("#proved").is_hidden()
    await page.unroute_all(behavior="wait")
    slow = "steps: its proof takes longer than 30 s: run `ldpstream certify steps`"
    await page.route(CERTIFICATE, lambda route: route.fulfill(status=503, json={"error": slow}))
    await open_view(page, url, "steps", "privacy")
    await expect(page.locator("#proof")).to_contain_text(f"not known: {slow}")
    assert await page.locator("#proved").is_hidden()
    assert await page.locator("#proof .good").count() == 0


async def test_the_chip_is_of_the_collection_that_is_shown(page: Page, url: str) -> None:
    await open_view(page, url, "free", "privacy")
    await expect(page.locator("#proved")).to_be_visible()
    await page.click("#tab-values")
    await page.wait_for_selector("#value-rows tbody tr")
    await expect(page.locator("#proved")).to_be_visible()
    await page.select_option("#collection", "steps")
    await expect(page).to_have_title("steps: Values · ldpstream")
    await expect(page.locator("#facts")).to_be_visible()
    await expect(page.locator("#proved")).to_be_hidden()


async def test_earlier_specs_are_named_and_where_they_are_proved(page: Page, url: str) -> None:
    def accepting(body: dict[str, Any]) -> None:
        for one in body["collections"]:
            one["accepted"] = [{"fingerprint": "0011223344556677"}]

    await change_answers(page, "**/api/collections", accepting)
    await open_view(page, url, "free", "privacy")
    await page.locator("#proof .good").wait_for()
    assert (await pairs(page, "#proof"))["earlier specs"] == "1, see below"
    note = page.locator("#proof-note")
    await expect(note).to_contain_text("ldpstream certify free proves the earlier specs, too")
    await expect(page.locator("#proved")).to_be_hidden()
    await expect(page.locator("#spent-note")).to_contain_text("this collection's newest spec alone")


@pytest.mark.parametrize("name", ["free", "held", "spread", "priors"])
async def test_a_year_in_words_is_the_certificates(page: Page, url: str, name: str) -> None:
    year = (await ask(url, f"{name}/certificate"))["year"]
    await open_view(page, url, name, "privacy")
    await expect(page.locator("#year-title")).to_have_text(year["title"])
    said = await pairs(page, "#year-readers")
    for reader in year["readers"]:
        assert said[reader["who"]] == reader["said"]
    assert said["In the clear with each report"] == f"{'; '.join(year['disclosed'])}."
    assert said.get("Not protected") == (year["unprotected"] and f"{year['unprotected']}.")
    text = await page.locator("#privacy").inner_text()
    assert re.search(r"\de\+\d", text) is None


async def test_a_year_is_printed_on_one_page_with_a_place_to_sign(page: Page, url: str) -> None:
    await open_view(page, url, "priors", "privacy")
    await expect(page.locator("#year")).to_be_visible()
    await expect(page.locator("#sign")).to_be_hidden()
    await page.emulate_media(media="print")
    await expect(page.locator("#sign p").last).to_have_text("Signature")
    await expect(page.locator("#sign")).to_be_visible()
    for other in ("#settings", "#facts", "#proof", "#print-year"):
        await expect(page.locator(other)).to_be_hidden()
    printed = await page.pdf(format="A4")
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 1
    await page.emulate_media(media="screen")
