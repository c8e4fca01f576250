"""docs/how-to/python.md, docs/how-to/four-jobs.md and the notebook, as a user runs them."""

import asyncio
import doctest
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiohttp.test_utils import TestServer

from ldpstream.agents.web import build_http
from tests.pages import ROOT, Block, agrees, blocks
from tests.stream.serving import MINUTE_MS, START_MS, serve_collections

PAGE = "docs/how-to/python.md"
JOBS = "docs/how-to/four-jobs.md"
LINES = 15
MODES = {
    "mechanism": "block-hadamard",
    "epsilon": 1.0,
    "domain": {"values": ["bus", "train", "walk", "car"]},
    "minimum": 1,
    "window": {"size": "1m"},
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for programs that draw, without a screen."""
    pytest.importorskip("pandas")
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    plt.close("all")


async def test_the_page_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipeline = serve_collections({"modes": MODES})
    for minute in range(2):
        times = [START_MS + minute * MINUTE_MS] * 300
        pipeline.collections["modes"].report(0, ["bus"] * 300, times_ms=times)
    async with TestServer(build_http(pipeline)) as server:
        await asyncio.to_thread(run, str(server.make_url("/")))
    table, asked, changes = capsys.readouterr().out.strip().rsplit("\n", 2)
    assert table.split()[:4] == ["label", "share", "low", "high"]
    assert asked == "300 8"
    assert changes.startswith("[('bus', -0.")
    assert (folder / "modes.png").stat().st_size > 1_000


def run(url: str) -> None:
    names: dict[str, Any] = {}
    runner = doctest.DocTestRunner()
    for block in blocks(PAGE):
        if block.language == "pycon":
            test = doctest.DocTestParser().get_doctest(block.code, names, block.place, PAGE, 0)
            assert runner.run(test, clear_globs=False).failed == 0
            names = test.globs
        elif block.language == "python":
            exec(block.code.replace("http://127.0.0.1:6066", url), names)


@pytest.mark.slow
@pytest.mark.parametrize("block", blocks(JOBS), ids=lambda block: block.heading)
def test_a_job_is_done_in_a_few_lines(
    block: Block, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert block.language == "python"
    assert len(list(filter(str.strip, block.code.splitlines()))) <= LINES
    exec(block.code, {})
    assert agrees(capsys.readouterr().out, block)
    (picture,) = re.findall(r'"(\w+\.png)"', block.code)
    assert (folder / picture).stat().st_size > 100


def test_there_are_four_jobs() -> None:
    assert len(blocks(JOBS)) == 4


NOTEBOOK = ROOT / "docs" / "tutorials" / "analyst-notebook.ipynb"


def cells() -> list[dict[str, Any]]:
    found = json.loads(NOTEBOOK.read_text("utf-8"))
    assert (found["nbformat"], found["metadata"]["kernelspec"]["language"]) == (4, "python")
    listed: list[dict[str, Any]] = found["cells"]
    return listed


def test_the_notebook_runs_and_its_bounds_hold_the_truth(capsys: pytest.CaptureFixture[str]):
    plt = pytest.importorskip("matplotlib.pyplot")
    pytest.importorskip("pandas")
    plt.switch_backend("agg")
    names: dict[str, Any] = {}
    try:
        for cell in cells():
            if cell["cell_type"] == "code":
                exec("".join(cell["source"]), names)
        assert capsys.readouterr().out == "True None\n"
        shown = names["axes"].get_yticklabels()
        assert [label.get_text() for label in shown] == names["labels"]
        crosses = names["axes"].lines[-1]
        assert np.allclose(crosses.get_xdata(), [0.5, 0.25, 0.15, 0.1], atol=0.02)
        # Seven standard errors: by Bernstein's bound exceeded with probability below 1e-9.
        for entry, truth in zip(names["document"].distribution, crosses.get_xdata(), strict=True):
            assert abs(entry.share - truth) < 7 * entry.se
    finally:
        plt.close("all")


def test_the_notebook_is_stored_without_outputs():
    for cell in cells():
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)


def test_the_links_of_the_notebook_lead_to_files():
    text = "".join(line for cell in cells() for line in cell["source"])
    links = re.findall(r"\]\(([^)#]+)", text)
    assert links
    assert all((NOTEBOOK.parent / link).exists() for link in links)
