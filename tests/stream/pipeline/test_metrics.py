"""The metrics, as Prometheus would parse them."""

from collections.abc import Iterator
from typing import Any

import prometheus_client.metrics
import pytest
from prometheus_client import REGISTRY, CollectorRegistry, Gauge
from prometheus_client.exposition import choose_encoder

from ldpstream import __version__
from ldpstream.agents.document.build import build_document
from ldpstream.agents.document.model import EstimateDocument
from ldpstream.agents.engine.gauges import track
from ldpstream.agents.engine.metrics import Metrics
from ldpstream.agents.state.flushes import Outcome
from ldpstream.agents.state.view import totals
from tests.stream.scraped import Samples, scrape, value
from tests.stream.serving import (
    AGES,
    CITY,
    MINUTE_MS,
    RIDES,
    START_MS,
    Pipeline,
    Served,
    foreign_frame,
    serve_collections,
    visits,
)


@pytest.fixture
def pipeline() -> Pipeline:
    return serve_collections({"city": CITY, "rides": RIDES, "ages": AGES})


@pytest.fixture
def metrics(pipeline: Pipeline) -> Metrics:
    return pipeline.metrics


def queries(samples: Samples, name: str, collection: str) -> dict[str, float]:
    """Return the samples of one of the estimate gauges by query."""
    return {
        dict(labels)["query"]: number
        for (family, labels), number in samples.items()
        if family == name and dict(labels).get("collection") == collection
    }


def newest(served: Served, start_ms: int = START_MS) -> EstimateDocument:
    """Return the document that is published of the window that starts at `start_ms`."""
    span = start_ms, start_ms + served.config.window.size_ms
    counted = totals(served.context, served.replicas, *span)
    return build_document(served.config, counted, window=span, final=False)


@pytest.mark.parametrize(
    "accept",
    [
        *("", "text/plain; version=1.0.0; escaping=underscores"),
        "application/openmetrics-text; version=1.0.0; escaping=allow-utf-8",
        "application/openmetrics-text; version=2.0.0",
    ],
)
def test_the_exposition_is_the_librarys_without_creation_times(
    monkeypatch: pytest.MonkeyPatch, accept: str
) -> None:
    registry = CollectorRegistry()
    metrics = Metrics(registry=registry)
    track(serve_collections({"city": CITY, "rides": RIDES}), metrics)
    metrics.http_seconds.labels('a "quoted"\n\\ operation', "200").observe(0.25)
    Gauge("no_labels", "None, and no\nnumber", registry=registry).set(float("nan"))
    monkeypatch.setattr(prometheus_client.metrics, "_use_created", False)
    encode, content_type = choose_encoder(accept)
    assert metrics.exposition(accept=accept) == (encode(registry), content_type)


def test_the_librarys_setting_for_creation_times_is_left_alone(metrics: Metrics) -> None:
    """The setting is the process's, and an application that embeds the pipeline may use it."""
    for accept in ("", "application/openmetrics-text; version=1.0.0"):
        assert b"_created" in choose_encoder(accept)[0](metrics.registry)
        assert b"_created" not in metrics.exposition(accept=accept)[0]


def test_counters_start_at_zero_and_advance_by_what_heads_won(metrics: Metrics) -> None:
    samples = scrape(metrics)
    for result in ("counted", "late", "rejected"):
        name = "ldpstream_reports_total"
        assert value(samples, name, collection="city", result=result) == 0
    assert value(samples, "ldpstream_lost_offsets_total", collection="city") == 0
    metrics.count_commit("city", Outcome(5, 2, {"future": 3, "undecodable": 1}, 0))
    metrics.count_commit("city", Outcome(1, 0, {}, 7))
    samples = scrape(metrics)
    results = {
        result: value(samples, "ldpstream_reports_total", collection="city", result=result)
        for result in ("counted", "late", "rejected")
    }
    assert results == {"counted": 6, "late": 2, "rejected": 4}
    name = "ldpstream_rejected_total"
    assert value(samples, name, collection="city", reason="future") == 3
    assert value(samples, name, collection="city", reason="undecodable") == 1
    assert value(samples, name, collection="city", reason="range") == 0
    assert value(samples, "ldpstream_lost_offsets_total", collection="city") == 7
    assert value(samples, "ldpstream_reports_total", collection="rides", result="counted") == 0


def test_partitions_show_lag_watermark_and_state(pipeline: Pipeline, metrics: Metrics) -> None:
    city = pipeline.collections["city"]
    assert "ldpstream_watermark_seconds" not in {name for name, _ in scrape(metrics)}
    city.report(0, visits(1, 40), times_ms=[START_MS + 30_000] * 40)
    city.end_offsets = {0: 9, 1: 9}
    city.owned = frozenset({0})
    city.problems.append("something")
    samples = scrape(metrics)
    own = {"collection": "city", "partition": "0"}
    assert value(samples, "ldpstream_lag_records", **own) == 8
    other = frozenset({("collection", "city"), ("partition", "1")})
    assert ("ldpstream_lag_records", other) not in samples
    assert value(samples, "ldpstream_watermark_seconds", **own) == START_MS / 1000 + 30
    cells = city.replicas[0].cells
    assert value(samples, "ldpstream_state_cells", **own) == len(cells) > 1
    size = sum(len(cell.value) for cell in cells.values())
    assert value(samples, "ldpstream_state_bytes", **own) == size
    assert value(samples, "ldpstream_owned", **own) == 1
    assert value(samples, "ldpstream_owned", collection="city", partition="1") == 0
    assert value(samples, "ldpstream_problems", collection="city") == 1
    assert value(samples, "ldpstream_collection_stopped", collection="city") == 1
    assert value(samples, "ldpstream_collection_stopped", collection="rides") == 0
    assert value(samples, "ldpstream_ready", collection="city") == 0
    assert value(samples, "ldpstream_ready", collection="rides") == 1


def test_estimates_are_those_of_the_document(pipeline: Pipeline, metrics: Metrics) -> None:
    city = pipeline.collections["city"]
    city.report(0, visits(1, 500), times_ms=[START_MS] * 500)
    document = newest(city)
    metrics.estimated("city", START_MS, document.to_json())
    samples = scrape(metrics)
    entries: dict[str, Any] = {"range:downtown": document.ranges[0]}
    entries |= {f"top:{rank}": one for rank, one in enumerate(document.distribution, start=1)}
    for name, attribute in (("", "share"), ("_low", "low"), ("_high", "high")):
        expected = {query: getattr(one, attribute) for query, one in entries.items()}
        assert queries(samples, f"ldpstream_estimate{name}", "city") == expected
    assert value(samples, "ldpstream_window_reports", collection="city") == 500
    end = START_MS / 1000 + 60
    assert value(samples, "ldpstream_window_end_seconds", collection="city") == end


def test_labels_are_named_where_all_are_listed(pipeline: Pipeline, metrics: Metrics) -> None:
    rides = pipeline.collections["rides"]
    rides.report(0, ["bus"] * 300 + ["train"] * 100, times_ms=[START_MS] * 400)
    metrics.estimated("rides", START_MS, newest(rides).to_json())
    found = queries(scrape(metrics), "ldpstream_estimate", "rides")
    assert set(found) == {"value:bus", "value:train", "value:tram"}


def test_quantiles_are_in_the_unit_of_the_values(pipeline: Pipeline, metrics: Metrics) -> None:
    ages = pipeline.collections["ages"]
    ages.report(0, [32.0] * 4000, times_ms=[START_MS] * 4000)
    metrics.estimated("ages", START_MS, newest(ages).to_json())
    samples = scrape(metrics)
    assert queries(samples, "ldpstream_estimate", "ages")["quantile:0.5"] == 35.0
    assert queries(samples, "ldpstream_estimate_low", "ages")["quantile:0.5"] <= 30.0
    assert queries(samples, "ldpstream_estimate_high", "ages")["quantile:0.5"] >= 40.0


def test_means_are_in_the_unit_of_their_weights() -> None:
    table = {**RIDES, "publish": {"linear": {"fare": {"bus": 250, "train": 400}}}}
    pipeline = serve_collections({"rides": table})
    metrics = pipeline.metrics
    rides = pipeline.collections["rides"]
    rides.report(0, ["bus"] * 4000, times_ms=[START_MS] * 4000)
    metrics.estimated("rides", START_MS, newest(rides).to_json())
    samples = scrape(metrics)
    low, mean, high = (
        queries(samples, f"ldpstream_estimate{end}", "rides")["linear:fare"]
        for end in ("_low", "", "_high")
    )
    assert 200 < low < mean < high < 300


def test_only_the_owner_of_partition_0_shows_estimates(
    pipeline: Pipeline, metrics: Metrics
) -> None:
    city = pipeline.collections["city"]
    city.report(0, visits(1, 500), times_ms=[START_MS] * 500)
    metrics.estimated("city", START_MS, newest(city).to_json())
    assert queries(scrape(metrics), "ldpstream_estimate", "city")
    city.owned = frozenset({1})
    assert not queries(scrape(metrics), "ldpstream_estimate", "city")
    city.owned = frozenset({0})
    assert queries(scrape(metrics), "ldpstream_estimate", "city")


def test_an_older_window_does_not_replace_the_newest(pipeline: Pipeline, metrics: Metrics) -> None:
    city = pipeline.collections["city"]
    city.report(0, visits(1, 300), times_ms=[START_MS] * 300)
    city.report(0, visits(2, 500), times_ms=[START_MS + MINUTE_MS] * 500)
    metrics.estimated("city", START_MS + MINUTE_MS, newest(city, START_MS + MINUTE_MS).to_json())
    metrics.estimated("city", START_MS, newest(city, START_MS).to_json())
    assert value(scrape(metrics), "ldpstream_window_reports", collection="city") == 500


def test_the_newest_final_is_shown_apart_from_open_windows(pipeline: Pipeline) -> None:
    city = pipeline.collections["city"]
    city.report(0, visits(1, 40), times_ms=[START_MS] * 40)
    metrics = pipeline.metrics
    name = "ldpstream_final_window_end_seconds"
    city.close(START_MS + MINUTE_MS)
    # This worker has not published the final: it is read from the state.
    samples = scrape(metrics)
    assert value(samples, name, collection="city") == START_MS / 1000 + 60
    assert value(samples, "ldpstream_final_window_reports", collection="city") == 40
    first = queries(samples, "ldpstream_final_estimate", "city")
    assert first["range:downtown"] == newest(city).ranges[0].share
    assert not queries(samples, "ldpstream_estimate", "city")
    second = START_MS + MINUTE_MS
    city.report(0, visits(2, 30), times_ms=[second] * 30)
    metrics.estimated("city", second, newest(city, second).to_json())
    samples = scrape(metrics)
    assert queries(samples, "ldpstream_final_estimate", "city") == first
    assert queries(samples, "ldpstream_estimate", "city") != first
    city.close(second + MINUTE_MS)
    assert value(scrape(metrics), name, collection="city") == second / 1000 + 60
    # Only the owner of partition 0 shows it.
    city.owned = frozenset({1})
    assert not queries(scrape(metrics), "ldpstream_final_estimate", "city")


def test_a_final_is_overdue_once_grace_and_idle_have_passed(
    pipeline: Pipeline, metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    city, name = pipeline.collections["city"], "ldpstream_final_overdue_seconds"
    window = city.config.window
    due_ms = START_MS + window.size_ms + window.grace_ms + (window.idle_ms or 0)

    def overdue(now_ms: int) -> float:
        monkeypatch.setattr(pipeline.clock, "now_ms", lambda: now_ms)
        return value(scrape(metrics), name, collection="city")

    assert overdue(due_ms + 90_000) == 0
    city.report(0, visits(1, 40), times_ms=[START_MS] * 40)
    assert [overdue(due_ms + late_ms) for late_ms in (-1, 0, 90_000)] == [0, 0, 90]
    city.close(START_MS + MINUTE_MS)
    assert overdue(due_ms + 90_000) == 0


def test_a_withheld_final_is_told_as_such() -> None:
    pipeline = serve_collections({"city": {**CITY, "minimum": 10}})
    metrics = pipeline.metrics
    city, name = pipeline.collections["city"], "ldpstream_final_withheld"
    city.report(0, visits(1, 3), times_ms=[START_MS] * 3)
    city.close(START_MS + MINUTE_MS)
    assert value(scrape(metrics), name, collection="city") == 1
    city.report(0, visits(1, 300), times_ms=[START_MS + MINUTE_MS] * 300)
    city.close(START_MS + 2 * MINUTE_MS)
    assert value(scrape(metrics), name, collection="city") == 0


def test_a_withheld_document_shows_no_estimate() -> None:
    pipeline = serve_collections({"city": {**CITY, "minimum": 10}})
    metrics = pipeline.metrics
    city = pipeline.collections["city"]
    city.report(0, visits(1, 500), times_ms=[START_MS] * 500)
    metrics.estimated("city", START_MS, newest(city).to_json())
    city.report(0, visits(1, 3), times_ms=[START_MS + MINUTE_MS] * 3)
    metrics.estimated("city", START_MS + MINUTE_MS, newest(city, START_MS + MINUTE_MS).to_json())
    samples = scrape(metrics)
    assert not queries(samples, "ldpstream_estimate", "city")
    assert value(samples, "ldpstream_window_reports", collection="city") == 3


def label_texts(samples: Samples) -> Iterator[str]:
    for _, labels in samples:
        for _, text in labels:
            yield text


def test_no_label_holds_what_a_device_sent(pipeline: Pipeline, metrics: Metrics) -> None:
    """Labels hold names of the configuration, partition numbers and this package's words alone."""
    city = pipeline.collections["city"]
    city.report(0, visits(1, 500), times_ms=[START_MS] * 500)
    city.deliver(0, foreign_frame())
    metrics.estimated("city", START_MS, newest(city).to_json())
    metrics.count_commit("city", Outcome(500, 0, {"fingerprint": 1}, 0))
    samples = {key: number for key, number in scrape(metrics).items() if "ldpstream" in key[0]}
    known = {"city", "rides", "ages", "counted", "late", "rejected", "0", "1", "range:downtown"}
    known |= {"share", "quantile", "mean"}
    known |= {"undecodable", "fingerprint", "range", "future", "precision", "time"}
    known |= {f"top:{rank}" for rank in range(1, 6)} | {__version__}
    bounds = {dict(labels).get("le", "0") for name, labels in samples if name.endswith("_bucket")}
    assert set(label_texts(samples)) <= known | bounds


def test_a_given_registry_gets_our_metrics_and_nothing_else(pipeline: Pipeline) -> None:
    registry = CollectorRegistry()
    track(pipeline, Metrics(registry=registry))
    names = {family.name for family in registry.collect()}
    assert names
    assert all(name.startswith("ldpstream_") for name in names)


def test_the_global_registry_is_left_alone(pipeline: Pipeline, metrics: Metrics) -> None:
    assert scrape(metrics)
    assert not [family for family in REGISTRY.collect() if family.name.startswith("ldpstream")]
