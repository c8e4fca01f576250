"""Requests that would take a worker too long or too much memory are refused at once."""

import pytest

from ldpstream.agents.web import computation as computing
from ldpstream.agents.web import estimates
from tests.stream.asking import CITY_PATH, FIRST, Client, ask, post


def never(*_: object, **__: object) -> None:
    raise AssertionError("the request costs more than it should")


async def test_too_large_requests_are_refused_before_they_are_computed(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(computing, "write_document", never)
    many = "&".join(["range=0..0,0..0"] * 101)
    assert (await ask(client, f"{CITY_PATH}?{many}", 400))["error"] == (
        "range: expected at most 100 of them, got 101"
    )
    monkeypatch.setattr(estimates, "CELLS_LIMIT", 150)
    monkeypatch.setattr(estimates, "VALUES_LIMIT", 50)
    three = "&".join(["range=0..0,0..0"] * 3)
    assert (await ask(client, f"{CITY_PATH}?{three}", 400))["error"] == (
        "range: expected at most 2 ranges and linear queries together over 60 values, got 3"
    )
    for top in ("all", "51", "999999999999"):
        refused = await ask(client, f"{CITY_PATH}?top={top}", 400)
        assert refused["error"] == "top: expected at most 50 of the domain's 60 values"


async def test_an_estimate_of_a_span_does_not_look_through_all_windows(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimates, "kept_windows", never)
    answer = await ask(client, f"{CITY_PATH}?start={FIRST[0]}&end={FIRST[1]}")
    assert answer["window"]["start"] == FIRST[0]


async def test_too_many_weights_are_refused_before_they_are_built(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ldpstream.agents.config.query.queries.make_linear", never)
    monkeypatch.setattr(estimates, "CELLS_LIMIT", 6)
    asked = {"linear": [{"name": "x", "weights": {"bus": 1}}] * 3}
    refused = await post(client, asked, 400, path="/api/collections/rides/estimate")
    assert refused["error"] == (
        "linear: expected at most 2 ranges and linear queries together over 3 values, got 3"
    )


async def test_quantiles_of_huge_domains_are_refused_unless_they_are_published(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimates, "QUANTILE_VALUES_LIMIT", 9)
    path = "/api/collections/ages/estimate"
    for query in ("?quantile=0.9", "?quantile=0.5&quantile=0.9"):
        refused = await ask(client, path + query, 400)
        assert refused["error"] == "quantile: expected a domain of at most 9 values, got 10"
    for query in ("", "?quantile=0.5"):
        assert [one["p"] for one in (await ask(client, path + query))["quantiles"]] == [0.5]
    posted = await post(client, {"quantiles": [0.1]}, 400, path=path)
    assert posted["error"] == refused["error"].replace("quantile:", "quantiles:")
    assert (await post(client, {"quantiles": []}, path=path))["quantiles"] == []


async def test_a_long_address_is_refused(client: Client) -> None:
    answer = await client.get(CITY_PATH + "?range=" + "0" * 10_000)
    assert answer.status in (400, 414)


async def test_the_queue_is_bounded(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ldpstream.agents.web.computation.WAITING_LIMIT", 0)
    answer = await ask(client, CITY_PATH, 503)
    assert answer["error"] == "0 requests are waiting already: try again later"
