"""The JavaScript client in a real Chromium: from another origin to the estimate, once a day."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.async_api import Browser, Error, Page, expect

from ldpstream.agents.broker.embedded import embedded_broker
from tests.broker.test_gateway import configure, reports, started
from tests.brokers import Broker
from tests.gateway.serving import NOW_MS
from tests.gateway.serving import gateway as serve_gateway
from tests.javascript.accepting import accepting
from tests.lab import Lab
from tests.processes import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

_CLIENT = Path(__file__).resolve().parents[2] / "clients" / "javascript"
pages = partial(accepting, {}, _CLIENT)
"""Serves the client on an origin of its own."""
_PROGRAM = """
async ([gateway, fingerprint, uploads]) => {
  const { Collection, post, uploadKey } = await import("/index.js");
  const at = `${gateway}/v1/collections/trips`;
  const collection = await Collection.fetch(`${at}/spec`, { fingerprint });
  let accepted = 0;
  const send = async (number) => {
    const frame = collection.frame(Array.from({ length: 1 + number % 3 }, () => number % 12));
    const key = uploadKey();
    const [first, again] = await Promise.all([
      post(`${at}/reports`, frame, { key }), post(`${at}/reports`, frame, { key }),
    ]);
    if (first.accepted !== again.accepted) throw new Error("a repeat got another answer");
    accepted += first.accepted;
  };
  for (let number = 0; number < uploads; number += 5)
    await Promise.all([0, 1, 2, 3, 4].map((more) => send(number + more)));
  const cut = collection.frame([1]).slice(0, -1);
  const refused = await post(`${at}/reports`, cut).catch((error) => error);
  return { accepted, refused: [refused.status, refused.detail, refused.retriable] };
}
"""


async def run(browser: Browser, page_url: str, *arguments: Any) -> Any:
    """Run the program on a page; its errors are the answer where it fails."""
    context = await browser.new_context()
    try:
        page = await context.new_page()
        await page.goto(f"{page_url}/package.json")
        return await page.evaluate(_PROGRAM, list(arguments))
    finally:
        await context.close()


@pytest.mark.broker
async def test_a_page_of_another_origin_reaches_the_estimate(browser: Browser, tmp_path: Path):
    with embedded_broker() as broker, pages() as (origin, _), pages() as (stranger, _):
        lab = Lab(Broker("embedded", broker.bootstrap), tmp_path)
        configure(lab, f'origins = ["{origin}"]')
        with lab.worker() as worker, started(lab) as gateway:
            asked = (gateway.url, lab.collection.spec.fingerprint.hex(), 50)
            found = await run(browser, origin, *asked)
            assert found["accepted"] == sum(1 + number % 3 for number in range(50))
            status, detail, retriable = found["refused"]
            assert (status, retriable) == (400, False)
            assert detail.startswith("expected one frame")
            with pytest.raises(Error, match="fetch"):
                await run(browser, stranger, *asked)
            await eventually(
                lambda: (
                    worker.metrics("ldpstream_reports_total", result="counted") == found["accepted"]
                )
            )
            windows = await asyncio.to_thread(worker.get, "/api/collections/trips/windows")
            spans = [one["window"] for one in windows["windows"]]
            span = f"start={spans[0]['start']}&end={spans[-1]['end']}"
            estimate = await asyncio.to_thread(
                worker.get, f"/api/collections/trips/estimate?{span}&top=all"
            )
            assert estimate["n"] == found["accepted"]
            assert len(estimate["distribution"]) == 12
            assert await reports(lab) == found["accepted"]
            assert gateway.terminate() == 0
            assert worker.terminate() == 0
            assert gateway.errors() == ""


async def test_a_day_has_one_report_through_reloads(page: Page, tmp_path: Path) -> None:
    with pages() as (origin, _):
        async with serve_gateway(tmp_path, origins=[origin]) as running:
            spec, broker = running.spec(), running.broker
            asked = {
                "gateway": running.url,
                "collection": "modes",
                "fingerprint": spec.fingerprint.hex(),
            }
            labels = [("label", one) for one in ("walk", "bus")]
            await page.clock.set_fixed_time(NOW_MS / 1000)
            await page.goto(f"{origin}/example/?{urlencode([*asked.items(), *labels])}")
            # It is closed before the broker has the report, and sends it again when it is back.
            broker.open.clear()
            await page.get_by_role("button", name="bus").click()
            await eventually(lambda: running.served.uploads.waiting == 1)
            kept = await page.evaluate("() => localStorage['ldpstream.modes']")
            assert "bus" not in kept
            await page.reload()
            await expect(page.get_by_role("status")).to_have_text("Sending…")
            broker.open.set()
            await expect(page.get_by_role("status")).to_have_text("Thank you. Come back tomorrow.")
            await page.reload()
            await expect(page.get_by_role("status")).to_have_text("You have answered today.")
            await expect(page.get_by_role("button")).to_have_count(0)
            assert broker.reports(spec) == 1
            await page.clock.set_fixed_time(NOW_MS / 1000 + 86_400)
            await page.reload()
            await page.get_by_role("button", name="walk").click()
            await expect(page.get_by_role("status")).to_have_text("Thank you. Come back tomorrow.")
            assert broker.reports(spec) == 2
