"""The typed client against a served pipeline: models, pages, specs and its documentation."""

import re
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestServer

from ldpstream.agents import client as api
from ldpstream.agents.client import Client, EstimateRequest, LinearRequest, RefusedError
from ldpstream.agents.web import build_http
from ldpstream.mechanisms.base.times import format_time
from tests.stream.asking import FIRST
from tests.stream.serving import MINUTE_MS, START_MS, Pipeline, serve_collections, visits


def minutes(documents: list[Any]) -> list[str]:
    return [one.window.start[11:16] for one in documents]


async def test_every_answer_is_a_model(worker: Client) -> None:
    assert [one.name for one in await worker.collections()] == ["city", "rides", "ages"]
    assert (await worker.collection("city")).values == 60
    assert (await worker.status("city")).counted == 800
    assert (await worker.readiness()).ready
    newest = await worker.estimate("city")
    assert (newest.n, newest.final, len(newest.distribution)) == (400, False, 5)
    asked = EstimateRequest(
        start=FIRST[0],
        end=FIRST[1],
        top=2,
        ranges=["0..1,0..4"],
        linear=[LinearRequest(name="one", weights=[1.0] * 60)],
    )
    document = await worker.estimate("city", asked)
    assert (document.final, len(document.distribution)) == (True, 2)
    assert (document.ranges[0].name, document.linear[0].mean) == ("0..1,0..4", 1.0)
    change = await worker.change("city", top=3, blocks=True, range=["downtown", "0..1,0..4"])
    assert (change.after.n, len(change.values), len(change.blocks)) == (400, 3, 4)
    assert [entry.name for entry in change.ranges] == ["downtown", "0..1,0..4"]
    series = await worker.series("city", top=2, points=10)
    assert (series.points.n, len(series.lines)) == ([400, 400], 2)


async def test_windows_come_page_by_page(worker: Client, pipeline: Pipeline) -> None:
    city = pipeline.collections["city"]
    for minute in range(2, 7):
        city.report(0, visits(minute, 5), times_ms=[START_MS + minute * MINUTE_MS] * 5)
    every = [f"10:0{i}" for i in range(7)]
    for page in (1, 2, 3, 100):
        assert minutes([one async for one in worker.windows("city", page=page)]) == every
        assert minutes(await worker.newest("city", 100, page=page)) == every
        assert minutes(await worker.newest("city", 4, page=page)) == every[3:]
        start, end = (format_time(START_MS + i * MINUTE_MS) for i in (1, 5))
        found = [one async for one in worker.windows("city", start=start, end=end, page=page)]
        assert minutes(found) == every[1:5]
        assert minutes(await worker.newest("city", 2, end=end, page=page)) == every[3:5]
    hopping = [one async for one in worker.windows("ages", page=1)]
    assert minutes(hopping) == ["09:59", "10:00"]
    assert [one async for one in worker.windows("rides")] == []


def test_the_package_exports_every_public_name() -> None:
    assert all(hasattr(api, name) for name in api.__all__)


async def test_the_program_of_the_documentation_runs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (Path(__file__).parents[3] / "docs/reference/http.md").read_text()
    (program,) = re.findall(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    modes = {
        "mechanism": "block-hadamard",
        "epsilon": 1.0,
        "domain": {"values": ["bus", "train", "walk", "car"]},
        "minimum": 1,
        "window": {"size": "1m"},
    }
    pipeline = serve_collections({"modes": modes})
    pipeline.collections["modes"].report(0, ["bus"] * 300, times_ms=[START_MS] * 300)
    async with TestServer(build_http(pipeline)) as server:
        here = program.replace("http://127.0.0.1:6066", str(server.make_url("/")))
        names: dict[str, Any] = {}
        exec(here.replace("asyncio.run(main())", ""), names)
        await names["main"]()
    said = capsys.readouterr().out
    assert said.startswith("bus ")
    assert "2026-11-21T10:00:00Z 300 False" in said


async def test_every_request_may_name_a_spec(worker: Client) -> None:
    own = {"fingerprint": (await worker.collection("city")).fingerprint}
    assert (await worker.estimate("city", **own)).fingerprint == own["fingerprint"]
    strange = {"fingerprint": "00" * 8}
    for ask in (
        lambda: worker.estimate("city", **strange),
        lambda: worker.status("city", **strange),
    ):
        with pytest.raises(RefusedError, match="fingerprint: expected one of "):
            await ask()
