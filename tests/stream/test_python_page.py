"""docs/python.md, from top to bottom in one session, as a notebook would have it."""

import asyncio
import doctest
from pathlib import Path

import pytest
from aiohttp.test_utils import TestServer

from ldpstream.agents.http import build_http
from tests.pages import blocks
from tests.stream.serving import MINUTE_MS, START_MS, serve_collections

PAGE = "docs/python.md"
MODES = {
    "mechanism": "block-hadamard",
    "epsilon": 1.0,
    "domain": {"values": ["bus", "train", "walk", "car"]},
    "minimum": 1,
    "window": {"size": "1m"},
}


async def test_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pandas")
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    monkeypatch.chdir(tmp_path)
    pipeline = serve_collections({"modes": MODES})
    for minute in range(2):
        times = [START_MS + minute * MINUTE_MS] * 300
        pipeline.collections["modes"].report(0, ["bus"] * 300, times_ms=times)
    async with TestServer(build_http(pipeline)) as server:
        await asyncio.to_thread(run, str(server.make_url("/")))
    plt.close("all")
    table, asked = capsys.readouterr().out.strip().rsplit("\n", 1)
    assert table.split()[:4] == ["label", "share", "low", "high"]
    assert asked == "300 8"
    assert (tmp_path / "modes.png").stat().st_size > 1_000


def run(url: str) -> None:
    names: dict[str, object] = {}
    runner = doctest.DocTestRunner()
    for block in blocks(PAGE):
        if block.language == "pycon":
            test = doctest.DocTestParser().get_doctest(block.code, names, block.place, PAGE, 0)
            assert runner.run(test, clear_globs=False).failed == 0
            names = test.globs
        elif block.language == "python":
            exec(block.code.replace("http://127.0.0.1:6066", url), names)
