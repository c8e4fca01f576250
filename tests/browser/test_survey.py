"""docs/tutorials/browser-survey.md as it stands, but for addresses: from a click to a count."""

import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest
from playwright.async_api import Error, Page, expect

from tests import pages
from tests.pages import ROOT, Place
from tests.ports import free_ports
from tests.processes import PATIENCE_SECONDS

pytestmark = [pytest.mark.broker, pytest.mark.asyncio(loop_scope="session")]

PAGE: Final = "docs/tutorials/browser-survey.md"


async def test_an_answer_is_randomised_counted_and_given_once_a_day(
    page: Page, tmp_path: Path
) -> None:
    numbers = dict(zip(("9092", "8080", "8000", "6066"), map(str, free_ports(4)), strict=True))
    addresses = {f"127.0.0.1:{port}": f"127.0.0.1:{own}" for port, own in numbers.items()}
    place = Place.made(tmp_path, {**addresses, "server 8000": f"server {numbers['8000']}"})
    (tmp_path / "clients").symlink_to(ROOT / "clients")
    configure, broker, worker, gateway, serve, address, query = pages.blocks(PAGE)
    place.shell(
        f"{configure.code}\nprintf '[worker]\\nhttp = \"127.0.0.1:6066\"\\n' >> survey.toml"
    )
    with ExitStack() as running:
        for block in (broker, worker, gateway):
            port = f" --port {numbers['9092']}" * (block is broker)
            command = place.here(f"exec {block.code.partition('#')[0].strip()}{port}")
            process = running.enter_context(place.running("sh", "-c", command))
            assert process.stdout is not None
            assert process.stdout.readline().startswith(b"ready ")
        files = place.running("sh", "-c", place.here(f"exec {serve.code}"), ours=False)
        running.enter_context(files)
        url = place.here(address.code.strip())
        pages.wait_for_window(86_400, left_seconds=60)
        await _open(page, url)
        await page.get_by_role("button", name="walk").click()
        await expect(page.get_by_role("status")).to_have_text("Thank you. Come back tomorrow.")
        await page.reload()
        await expect(page.get_by_role("status")).to_have_text("You have answered today.")
        said, until = "", time.monotonic() + PATIENCE_SECONDS
        while not pages.agrees(said, query) and time.monotonic() < until:
            said = place.shell(f"{query.code.strip()} || sleep 0.2")
        assert pages.agrees(said, query), said


async def _open(page: Page, url: str) -> None:
    """Open an address once its server, which does not say when it is ready, answers."""
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            await page.goto(url)
        except Error:
            if time.monotonic() > until:
                raise
            await page.wait_for_timeout(100)
        else:
            return
