"""The JavaScript client's example page, as it stands, in a real Chromium: one report a day."""

from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.async_api import Page, expect

from tests.browser.test_gateway import pages
from tests.gateway.serving import NOW_MS, gateway
from tests.processes import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_day_has_one_report_through_reloads(page: Page, tmp_path: Path) -> None:
    with pages() as (origin, _):
        async with gateway(tmp_path, origins=[origin]) as running:
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
