"""A real Chromium draws what the API answers: the same numbers, to the last digit."""

import json
import shlex
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from aiohttp import ClientSession
from playwright.async_api import Page, expect

from ldpstream.agents.document.model import EstimateDocument
from tests.browser.looking import (
    ask,
    change_answers,
    drawn,
    drawn_windows,
    lines,
    numbers,
    open_view,
    rows,
    within,
)
from tests.browser.showing import AGES

pytestmark = pytest.mark.asyncio(loop_scope="session")

FINAL = "2026-11-21T10:00:00Z"
SPAN = {"start": FINAL, "end": "2026-11-21T10:01:00Z"}
ALL = {"simultaneous": "true"}
TOGETHER = {"method": "anytime", **ALL}
"""As values of an open window are asked for."""
NOTE_COPIED = (
    "if (navigator.clipboard)"
    "  navigator.clipboard.writeText = async text => { window.copiedText = text; }"
)


def text(label: Any) -> str:
    """Return a label as the page writes it: JSON with a space, labels without quotes.

    Pairs of floats are bins of the ages, which end before their end but for the last.
    """
    if isinstance(label, list) and all(isinstance(one, float) for one in label):
        low, high = label
        return f"[{low:g}, {high:g}{']' if high == AGES['domain']['interval'][1] else ')'}"
    if isinstance(label, list):
        return f"[{', '.join(text(one) for one in label)}]"
    return f"{label:.12g}" if isinstance(label, float) else str(label)


def listed(entries: list[dict[str, Any]], name: str) -> list[list[Any]]:
    """Return the rows of a table of shares."""
    return [
        [
            text(e[name]),
            e["share"],
            "chart",
            *numbers(e, "low", "high", "count"),
        ]
        for e in map(within, entries)
    ]


@pytest.mark.parametrize("collection", ["modes", "ages", "places", "smokers"])
async def test_values_ranges_and_quantiles_of_an_open_window(
    page: Page, url: str, collection: str
) -> None:
    # Ordered values are in their order, all where they are few.
    top = "all" if collection == "ages" else 20
    document = await ask(url, f"{collection}/estimate", top=top, **TOGETHER)
    assert document["final"] is False
    if collection in ("ages", "places"):
        document["distribution"].sort(key=lambda one: one["value"])
    await open_view(page, url, collection, "values")
    assert await rows(page, "#value-rows") == listed(document["distribution"], "value")
    assert await rows(page, "#range-rows") == listed(document["ranges"], "name")
    assert await rows(page, "#linear-rows") == [
        [m["name"], m["mean"], "chart", *numbers(m, "low", "high", "total")]
        for m in document.get("linear", [])
    ]
    assert await page.locator("#linear").is_visible() == (collection == "modes")
    assert await rows(page, "#quantile-rows") == [
        [q["p"], *map(text, numbers(q, "value", "low", "high"))] for q in document["quantiles"]
    ]
    assert await page.locator("#n data").get_attribute("value") == str(document["n"])
    assert await page.locator("#state").inner_text() == "Open"
    promise = await page.locator("#bounds").inner_text()
    assert "at every moment of the window at once" in promise
    assert "method anytime" in promise


async def test_a_final_window_is_bounded_as_configured(page: Page, url: str) -> None:
    document = await ask(url, "modes/estimate", top=20, **SPAN, **ALL)
    assert document["method"] == "padded"
    await open_view(page, url, "modes", "values", f"&window={FINAL}")
    assert await rows(page, "#value-rows") == listed(document["distribution"], "value")
    assert await page.locator("#state").inner_text() == "Final"
    assert "now that it is closed" in await page.locator("#bounds").inner_text()
    await page.select_option("#method", "bernstein")
    await expect(page.locator("#bounds")).to_contain_text("bernstein")
    wider = await ask(url, "modes/estimate", top=20, **SPAN, **ALL, method="bernstein")
    assert await rows(page, "#value-rows") == listed(wider["distribution"], "value")


async def test_priors_are_told_with_their_test(page: Page, url: str) -> None:
    document = await ask(url, "smokers/estimate", top=20, **TOGETHER)
    await open_view(page, url, "smokers", "values")
    said = await page.locator("#mmse").inner_text()
    assert f"{100 * document['mmse']['share']:.2f}% have “yes”" in said
    assert "agree with the priors" in await page.locator("#calibration").inner_text()
    assert document["calibration"]["wrong"] is False

    def contradict(told: dict[str, Any]) -> None:
        told["mmse"] |= dict.fromkeys(("share", "count", "se", "low", "high"))
        told["mmse"]["withheld"] = "the reports contradict the priors, which are too low"
        told["calibration"] |= {"wrong": True, "suspicion": "too low", "p_value": 1e-5}

    await change_answers(page, "**/smokers/estimate?*", contradict)
    await page.reload()
    await expect(page.locator("#calibration")).to_contain_text(
        "The priors are too low (p < 0.0001, below 0.001): 0 of 4 levels"
    )
    said = await page.locator("#mmse").inner_text()
    assert said.endswith("of “yes” is given: the reports contradict the priors, which are too low.")


CUMULATIVE: dict[str, list[tuple[str, str]]] = {
    "ages": [(text([2.0 * i, 2.0 * i + 2.0]), f"0..{2 * i + 2}") for i in range(50)],
    "floors": [(f"{i}", f"0..{i}") for i in range(7)],
    # Edges that decimals do not write exactly: the page computes them as the worker does.
    "hours": [(text(float(edge)), f"0..{float(edge)}") for edge in np.linspace(0.0, 0.7, 8)],
}


@pytest.mark.parametrize("collection", CUMULATIVE)
async def test_the_cumulative_distribution_and_its_quantiles(
    page: Page, url: str, collection: str
) -> None:
    await open_view(page, url, collection, "cumulative")
    document = await ask(
        url,
        f"{collection}/estimate",
        top=0,
        method="anytime",
        simultaneous="true",
        range=[asked for _, asked in CUMULATIVE[collection]],
    )
    assert await rows(page, "#cdf-rows") == [
        [name, *numbers(within(entry), "share", "low", "high")]
        for (name, _), entry in zip(CUMULATIVE[collection], document["ranges"], strict=True)
    ]
    assert await rows(page, "#cdf-quantile-rows") == [
        [q["p"], *map(text, numbers(q, "value", "low", "high"))] for q in document["quantiles"]
    ]
    assert await page.locator("#cdf-chart canvas").count() == 1
    assert await painted(page, "#cdf-chart canvas") > 0.02


async def test_weights_stand_beside_the_shares(page: Page, url: str) -> None:
    document = await ask(url, "floors/estimate", top="all", **TOGETHER)
    await open_view(page, url, "floors", "values")
    weights = [numbers(e["weight"], "total", "low", "high") for e in document["distribution"]]
    assert [row[-3:] for row in await rows(page, "#value-rows")] == weights


async def test_series_over_windows_with_provisional_marked_apart(page: Page, url: str) -> None:
    await open_view(page, url, "ages", "time")
    known = (await ask(url, "ages/windows"))["windows"]
    assert [w["final"] for w in known] == [True] * 7 + [False]
    for row, window in zip(await drawn_windows(page), reversed(known), strict=True):
        method = "padded" if window["final"] else "anytime"
        asked = {"method": method, "simultaneous": "true"}
        document = await ask(url, "ages/estimate", **window["window"], **asked)
        for entry in document["ranges"]:
            told = numbers(within(entry), "share", "low", "high")
            assert row[entry["name"]] == pytest.approx(told, rel=1e-5)
        state = "final" if window["final"] else "provisional"
        assert row[""][1:] == [state, *numbers(window, "n", "late")]
    assert await page.locator("#time-charts canvas").count() == 2
    said = await page.locator("#time-bounds").inner_text()
    assert "final windows: padded; open ones: anytime" in said


async def test_published_means_are_followed_over_windows(page: Page, url: str) -> None:
    await open_view(page, url, "modes", "time", '&lines=["Mean fare","Mean speed"]')
    # Each has its own unit, so its own scale; the third is of reports.
    assert await page.locator("#time-charts canvas").count() == 3
    newest = (await ask(url, "modes/windows"))["windows"][-1]["window"]
    document = await ask(url, "modes/estimate", **newest, **TOGETHER)
    (row, *_) = await drawn_windows(page)
    for mean in document["linear"]:
        told = numbers(mean, "mean", "low", "high")
        assert row[f"Mean {mean['name']}"] == pytest.approx(told, rel=1e-5)


async def test_what_is_withheld_is_not_shown(page: Page, url: str) -> None:
    answer = {
        **await ask(url, "modes/estimate"),
        "n": 0,
        "withheld": True,
    }
    kept = {k: answer[k] for k in ("collection", "fingerprint", "window", "n", "final", "withheld")}
    await page.route("**/modes/estimate?*", lambda route: route.fulfill(body=json.dumps(kept)))
    await page.goto(f"{url}/#collection=modes&view=values")
    await page.wait_for_selector("#withheld:not([hidden])")
    assert "0 of 1 reports" in await page.locator("#withheld").inner_text()
    shown = page.locator("#withheld a")
    await expect(shown).to_have_text("Newest window that is shown: Sat, Nov 21, 10:06 – 10:07 UTC")
    assert not await page.locator("#value-rows").is_visible()


async def test_the_privacy_statement_is_the_apis(page: Page, url: str) -> None:
    places = await ask(url, "places")
    await open_view(page, url, "places", "privacy")
    first = await page.locator("#privacy-sum").inner_text()
    said = f"{places['privacy']['protected'][0]} Not all values are protected: see below."
    assert first == said
    assert "20.1" in first
    shown = await page.locator("#protected li").all_inner_texts()
    assert shown == places["privacy"]["protected"][1:]
    assert await page.locator("#unprotected").inner_text() == places["privacy"]["unprotected"]
    document = await ask(url, "places/estimate", method="anytime")
    shown = await page.locator("#forgery data").evaluate_all("all => all.map(d => +d.value)")
    assert shown == numbers(document, "influence", "forged")


async def test_who_sees_what_follows_from_the_policy(page: Page, url: str) -> None:
    places = await ask(url, "places")
    block, time, taking = places["privacy"]["disclosed"]
    randomized, messages = "randomized, ε\u00a03 in a block", "time and size of messages"
    sums = "in sums, however small"
    await open_view(page, url, "places", "privacy")
    assert await rows(page, "#seen-rows") == [
        ["the value", randomized, randomized, randomized, sums],
        [block, *["in the clear"] * 3, sums],
        [time, *["in the clear"] * 3, "counts per 1 min"],
        [taking, "yes", messages, messages, "exact counts"],
        [
            "which device or account sent it", "not in a report",
            "only who connects", "no", "no",
        ],
    ]  # fmt: skip
    token = "a token: which reports of one window are one device's"
    epoch = "which reports of an epoch of 4 windows may be one device's: they are the same one"

    def others(body: dict[str, Any]) -> None:
        (one,) = (one for one in body["collections"] if one["name"] == "places")
        one |= {"minimum": 1000, "minimum_block": 50}
        one["privacy"]["disclosed"] = [block, token, epoch]

    await change_answers(page, "**/api/collections", others)
    await open_view(page, url, "places", "privacy")
    shown = await rows(page, "#seen-rows")
    assert [row[-1] for row in shown[:-1]] == [
        "in sums, of 1,000 or more reports",
        "in sums, of 50 or more reports",
        "no",
        "only sums over them",
    ]


async def test_what_is_chosen_is_in_the_address_and_survives_a_reload(page: Page, url: str) -> None:
    await open_view(page, url, "ages", "values")
    await page.select_option("#top", "all")
    await page.click("#older")
    await expect(page.locator("#value-rows tbody tr")).to_have_count(50)
    await expect(page.locator("#state")).to_have_text("Final")
    assert "top=all" in page.url
    assert "window=2026-11-21T10%3A06%3A00Z" in page.url
    await page.reload()
    await drawn(page, "values")
    assert await page.locator("#state").inner_text() == "Final"
    assert len(await rows(page, "#value-rows")) == 50


async def painted(page: Page, canvas: str) -> float:
    """Return the share of a canvas's pixels that are not transparent."""
    script = """canvas => {
      const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      let count = 0;
      for (let at = 3; at < data.length; at += 4) count += data[at] > 0;
      return count / (data.length / 4);
    }"""
    share: float = await page.locator(canvas).evaluate(script)
    return share


async def copied(page: Page, command: str) -> str:
    """Return what *Copy as* gives."""
    await page.click(f"#copy-{command}")
    text: str = await page.evaluate("copiedText")
    return text


@pytest.mark.parametrize(
    ("collection", "view"), [("modes", "values"), ("ages", "cumulative"), ("places", "map")]
)
async def test_copied_python_asks_for_the_numbers_that_curl_and_the_page_ask_for(
    page: Page, url: str, collection: str, view: str
) -> None:
    await page.add_init_script(NOTE_COPIED)
    await open_view(page, url, collection, view, "&top=10&method=anytime&window=")
    address = shlex.split(await copied(page, "curl"))[-1]
    async with ClientSession() as session, session.get(address) as answer:
        document = EstimateDocument.model_validate(await answer.json())
    printed: list[EstimateDocument] = []
    names: dict[str, Any] = {"print": printed.append}
    exec((await copied(page, "python")).replace("asyncio.run(main())", ""), names)
    await names["main"]()
    assert printed == [document]
    assert document.method == "anytime"


async def test_values_are_searched_sorted_followed_and_asked_for_elsewhere(
    page: Page, url: str
) -> None:
    await page.add_init_script(NOTE_COPIED)
    await open_view(page, url, "modes", "values", "&window=")
    names = page.locator("#value-rows tbody th")
    await page.keyboard.press("/")
    await page.keyboard.type("tra")
    await expect(names).to_have_count(2)
    assert set(await names.all_inner_texts()) == {"tram", "train"}
    await page.reload()
    await expect(page.locator("#search")).to_have_value("tra")
    await page.fill("#search", "")
    await expect(names).to_have_count(6)
    await page.locator("#value-rows [data-sort=value]").click()
    await expect(names).to_have_text(sorted(["walk", "bike", "bus", "tram", "train", "car"]))
    address = shlex.split(await copied(page, "curl"))[-1]
    async with ClientSession() as session, session.get(address) as answer:
        document = await answer.json()
    shares = {one["value"]: one["share"] for one in map(within, document["distribution"])}
    assert {row[0]: row[1] for row in await rows(page, "#value-rows")} == shares
    await names.filter(has_text="tram").locator("a").click()
    await drawn(page, "time")
    assert await lines(page) == ["tram"]


QUANTILES = [0.1, 0.5, 0.9]
COMPARABLE = "&window=2026-11-21T10:05:00Z"
_RECORD = """
window.labels = new Map();
window.dashes = [];
const pen = CanvasRenderingContext2D.prototype;
const {fillText, stroke} = pen;
pen.fillText = function (text, x, y) {
  if (text.includes("% up to ") && this.canvas.closest("#cdf-chart")) labels.set(text, y);
  return fillText.apply(this, arguments);
};
pen.stroke = function () {
  if (String(this.getLineDash()) === "5,4") dashes.push(this.strokeStyle);
  return stroke.apply(this, arguments);
};
"""


async def labels(page: Page) -> list[float]:
    """Return the heights of the labels of quantiles in the chart."""
    found: list[float] = await page.evaluate("() => [...labels.values()]")
    return sorted(found)


async def test_quantiles_are_labelled_apart_and_not_on_a_phone(page: Page, url: str) -> None:
    await page.add_init_script(_RECORD)
    await open_view(page, url, "ages", "cumulative", COMPARABLE)
    heights = await labels(page)
    assert len(heights) == len(QUANTILES)
    assert all(high - low > 12 for low, high in pairwise(heights))
    await page.set_viewport_size({"width": 390, "height": 800})
    await open_view(page, url, "ages", "cumulative", COMPARABLE)
    assert await labels(page) == []


async def test_a_compared_window_is_dashed_and_changes_are_the_workers(
    page: Page, url: str
) -> None:
    await page.emulate_media(color_scheme="light")
    await page.add_init_script(_RECORD)
    await open_view(page, url, "ages", "cumulative", f"{COMPARABLE}&compare=before")
    panel = page.locator("#compared")
    await panel.locator("summary").click()
    table = panel.locator("table:not(#compared-rows)")
    said = page.locator("#cdf-bounds")
    await expect(said).to_contain_text("Dashed: Sat, Nov 21, 10:04 – 10:05 UTC.")
    assert set(await page.evaluate("dashes")) == {"#737f8d"}
    then, now = [one["window"] for one in (await ask(url, "ages/windows"))["windows"]][4:6]
    before = {f"before_{name}": time for name, time in then.items()}
    judged = await ask(url, "ages/change", **now, **before, quantile=QUANTILES)
    for one in judged["quantiles"]:
        row = panel.locator("tbody tr").filter(has_text=f"Quantile {one['p']}")
        cell = row.locator("td").last
        shown = "changed by" if one["told"] else "no difference shown"
        await expect(cell).to_contain_text(shown)
        ends = [2 * one[end] for end in ("low", "high")]  # Bins are as wide.
        signed = [f"{'+' if end > 0 else ''}{end:g}".replace("-", "−") for end in ends]
        await expect(cell.locator("small")).to_have_text(" to ".join(signed))
    assert await table.evaluate("it => it.scrollWidth <= it.parentElement.clientWidth")
    await page.keyboard.press("c")
    await expect(panel).to_be_hidden()
