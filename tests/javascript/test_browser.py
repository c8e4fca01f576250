"""The JavaScript client in a real Chromium: every vector, and an upload.

With LDPSTREAM_REQUIRE_ALL=1 a missing Chromium fails the test instead of skipping it.
"""

import json
import re
from pathlib import Path

from playwright.async_api import expect

from ldpstream.mechanisms import decode_frame
from tests.browser.chromium import need_chromium, start_chromium
from tests.javascript.accepting import accepting

ROOT = Path(__file__).resolve().parents[2]
VECTORS = json.loads((ROOT / "tests" / "vectors" / "devices.json").read_text("utf-8"))
BINARY = VECTORS[0]["document"]


async def test_a_browser_draws_the_vectors_and_uploads():
    path = need_chromium()
    with accepting({"/spec": json.dumps(BINARY).encode()}, ROOT) as (url, uploads):
        async with start_chromium(path) as browser:
            page = await browser.new_page()
            await page.goto(f"{url}/tests/javascript/browser.html")
            said = page.locator("#said")
            await expect(said).not_to_be_empty(timeout=120_000)
            found = json.loads(await said.inner_text())
    assert found == {
        "same": len(VECTORS),
        "different": [],
        "draws": True,
        "answer": {"accepted": 1},
    }
    (upload,) = uploads
    assert upload.headers["Content-Type"] == "application/vnd.ldpstream.frame"
    assert re.fullmatch("[0-9a-f]{32}", upload.headers["Idempotency-Key"])
    assert not {"cookie", "referer"} & {name.lower() for name in upload.headers}
    fingerprint = bytes.fromhex(BINARY["fingerprint"])
    assert decode_frame(upload.body, fingerprint=fingerprint, report_bytes=1).counts.tolist() == [1]
