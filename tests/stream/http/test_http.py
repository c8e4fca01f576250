"""The HTTP API on real replicas and partitions, without a broker."""

import asyncio
import json
import threading
import time
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from ldpstream.agents.config.query.options import EstimateOptions
from ldpstream.agents.document.build import build_document, write_document
from ldpstream.agents.state.view import totals
from ldpstream.agents.web import HttpUnavailableError, build_http
from ldpstream.agents.web import computation as computing
from ldpstream.agents.web.api import DESCRIBING
from tests.replicas import final_document
from tests.stream.asking import FIRST, Client, ask
from tests.stream.serving import MINUTE_MS, START_MS, Pipeline, Served, serve


def document(
    served: Served, start_ms: int, end_ms: int, *, final: bool, **options: Any
) -> dict[str, Any]:
    """Return what `build_document` gives for a span, as JSON."""
    chosen = EstimateOptions(**options) if options else None
    counted = totals(served.context, served.replicas, start_ms, end_ms)
    made = build_document(
        served.config, counted, window=(start_ms, end_ms), final=final, options=chosen
    )
    parsed: dict[str, Any] = json.loads(made.to_json())
    return parsed


async def test_collections_are_listed_in_the_order_of_the_configuration(client: Client) -> None:
    listed = (await ask(client, "/api/collections"))["collections"]
    assert [one["name"] for one in listed] == ["city", "rides", "ages"]
    assert listed[0] == await ask(client, "/api/collections/city")
    assert (listed[0]["values"], listed[0]["ranges"]) == (60, ["downtown"])
    assert listed[0]["window"]["idle_ms"] is None
    assert listed[2]["window"] == {
        "size_ms": 120_000, "hop_ms": 60_000, "grace_ms": 60_000, "idle_ms": 30_000,
        "pane_ms": 60_000, "size": "2m every 1m", "timezone": "UTC", "week_start": None,
    }  # fmt: skip


async def test_a_collection_whose_policy_is_worked_out_waits_for_no_other(
    client: Client,
) -> None:
    first = await ask(client, "/api/collections/city")
    async with client.app[DESCRIBING], asyncio.timeout(10):
        assert await ask(client, "/api/collections/city") == first


async def test_what_a_policy_means_takes_one_thread_at_a_time(
    client: Client, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = {"now": 0, "most": 0}
    to_thread = asyncio.to_thread

    async def counted(*arguments: Any) -> Any:
        counts["now"] += 1
        counts["most"] = max(counts.values())
        try:
            return await to_thread(*arguments)
        finally:
            counts["now"] -= 1

    monkeypatch.setattr(asyncio, "to_thread", counted)
    await asyncio.gather(*(ask(client, "/api/collections/city") for _ in range(3)))
    assert counts == {"now": 0, "most": 1}


async def test_windows_show_their_progress(client: Client) -> None:
    answer = await ask(client, "/api/collections/city/windows")
    first, second = answer["windows"]
    assert first == {
        "window": {"start": FIRST[0], "end": FIRST[1]},
        "n": 400, "late": 3, "final": True, "published": True,
    }  # fmt: skip
    assert (second["n"], second["final"], second["published"]) == (400, False, False)
    assert not answer["more"]


async def test_estimates_are_the_documents_of_build_document(
    client: Client, pipeline: Pipeline
) -> None:
    city = pipeline.collections["city"]
    path = "/api/collections/city/estimate"
    start_ms, middle_ms, end_ms = (START_MS + i * MINUTE_MS for i in range(3))
    assert await ask(client, path) == document(city, middle_ms, end_ms, final=False)
    span = f"?start={FIRST[0]}&end={FIRST[1]}"
    assert await ask(client, path + span) == document(city, start_ms, middle_ms, final=True)
    both = f"?start={start_ms}&end={end_ms}"
    assert await ask(client, path + both) == document(city, start_ms, end_ms, final=False)
    assert (await ask(client, path + both))["n"] == 800


async def test_a_span_is_final_once_all_its_windows_are(client: Client, pipeline: Pipeline) -> None:
    path = "/api/collections/city/estimate?start={}&end={}"
    start_ms, middle_ms, end_ms = (START_MS + i * MINUTE_MS for i in range(3))
    city = pipeline.collections["city"]

    async def final(start: int, end: int) -> bool:
        return bool((await ask(client, path.format(start, end)))["final"])

    # Minutes without reports close as well.
    assert await final(start_ms - 5 * MINUTE_MS, middle_ms)
    assert await final(start_ms - 5 * MINUTE_MS, start_ms)
    assert not await final(start_ms, end_ms)
    city.close(end_ms)
    assert await final(start_ms, end_ms)
    assert not await final(start_ms, end_ms + MINUTE_MS)


async def test_a_closed_window_answers_its_final_apart_from_late_reports(
    client: Client, pipeline: Pipeline
) -> None:
    final = final_document(pipeline.collections["city"], START_MS)
    answer = await ask(client, f"/api/collections/city/estimate?start={FIRST[0]}&end={FIRST[1]}")
    assert answer.pop("late") == 3
    assert final.pop("late") == 0
    assert answer == final


async def test_status_adds_up_partitions(client: Client) -> None:
    answer = await ask(client, "/api/collections/city/status")
    assert (answer["counted"], answer["late"], answer["rejected"]) == (800, 3, 2)
    first, second = answer["partitions"]
    assert first["rejected"] == {"fingerprint": 1}
    assert second["rejected"] == {"undecodable": 1}
    assert (second["next"], second["end_offset"], second["lag"]) == (4, 4, 0)
    assert first["watermark"] == "2026-11-21T10:02:00Z"


async def test_only_its_owner_shows_how_far_behind_a_partition_is(
    client: Client, pipeline: Pipeline
) -> None:
    pipeline.collections["city"].owned = frozenset({0})
    first, second = (await ask(client, "/api/collections/city/status"))["partitions"]
    assert (first["owned"], first["lag"]) == (True, 0)
    assert (second["owned"], second["end_offset"], second["lag"]) == (False, None, None)
    assert second["counted"] == 400


async def test_long_computations_leave_the_event_loop(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of many cheap requests one computes at a time, none of them on the loop's thread."""
    running, most, threads = 0, 0, set()
    counting = threading.Lock()
    original = write_document

    def slow(*args: Any, **kwargs: Any) -> Any:
        nonlocal running, most
        with counting:
            running += 1
            most = max(most, running)
            threads.add(threading.get_ident())
        time.sleep(0.01)
        with counting:
            running -= 1
        return original(*args, **kwargs)

    monkeypatch.setattr(computing, "write_document", slow)
    asked = [ask(client, "/api/collections/city/estimate?top=3") for _ in range(6)]
    answers = await asyncio.gather(*asked)
    assert all(answer == answers[0] for answer in answers)
    assert most == 1
    assert threading.get_ident() not in threads


async def test_the_application_can_be_mounted(pipeline: Pipeline) -> None:
    outer = web.Application()
    outer.add_subapp("/privacy/", build_http(pipeline))
    async with TestClient(TestServer(outer)) as client:
        listed = await ask(client, "/privacy/api/collections")
        assert len(listed["collections"]) == 3
        assert (await client.get("/privacy/")).content_type == "text/html"
        assert (await client.get("/api/collections")).status == 404


async def test_serve_says_where_it_serves_and_what_is_wrong(pipeline: Pipeline) -> None:
    async with serve(pipeline) as url:
        port = int(url.rpartition(":")[2])
        assert url == f"http://127.0.0.1:{port}"
        with pytest.raises(HttpUnavailableError, match=f"cannot serve HTTP on 127.0.0.1:{port}"):
            async with serve(pipeline, port=port):
                pass


async def test_accepted_specs_are_listed_and_asked_for_by_fingerprint(
    pipeline: Pipeline, client: Client
) -> None:
    # Another collection stands for an earlier spec of this one.
    city, ages = pipeline.collections["city"], pipeline.collections["ages"]
    city.accepted = (ages,)
    own, other = (one.config.spec.fingerprint.hex() for one in (city, ages))
    (accepted,) = (await ask(client, "/api/collections/city"))["accepted"]
    assert (accepted["fingerprint"], accepted["values"], accepted["ready"]) == (other, 10, True)
    for path in ("windows?all=true", "estimate?top=all", "status?"):
        asked = f"/api/collections/city/{path}&fingerprint="
        assert await ask(client, asked + own) == await ask(client, f"/api/collections/city/{path}")
        assert await ask(client, asked + other) == await ask(
            client, f"/api/collections/ages/{path}"
        )
    refused = await ask(client, "/api/collections/city/windows?fingerprint=00", 400)
    assert refused["error"] == f"fingerprint: expected one of {own}, {other}, got '00'"
    ages.problems.append("its state cannot be used")
    reasons = (await ask(client, "/readyz", 503))["reasons"]
    assert f"city ({other}) has stopped: its state cannot be used" in reasons
