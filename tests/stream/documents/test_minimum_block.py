"""`minimum_block`: which blocks a part merges, and what a document says about them."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from aiohttp.test_utils import TestClient, TestServer
from hypothesis import given
from hypothesis import strategies as st

from ldpstream.agents.cli.terminal.tables import describe_merged
from ldpstream.agents.config import CollectionConfig, ConfigError
from ldpstream.agents.config.query.options import EstimateOptions
from ldpstream.agents.document.build import build_document
from ldpstream.agents.document.flat import HEADER, document_rows
from ldpstream.agents.document.model import MergedBlocks
from ldpstream.agents.state.cell_encoding import encode_chunk
from ldpstream.agents.state.context import WindowTotals
from ldpstream.agents.state.disclosure_groups import add_parts, merged_blocks
from ldpstream.agents.state.view import Snapshot, add_up
from ldpstream.agents.web import build_http
from ldpstream.agents.web.computation import Job
from ldpstream.mechanisms.domains.queries import Linear, Range
from ldpstream.mechanisms.wire.spec import CollectionSpec
from tests.property.documents import LABELS, collection, written
from tests.replicas import final_document
from tests.seeded import SeededEntropy
from tests.stream.asking import CITY_PATH
from tests.stream.harness import make_context
from tests.stream.serving import CITY, MINUTE_MS, START_MS, serve_collections

TABLE: dict[str, Any] = {
    "mechanism": "block-hadamard",
    "epsilon": 1.0,
    "domain": {"size": 12, "blocks": 3},
}
MERGING = {"minimum": 20, "minimum_block": 10}
EVERYTHING = EstimateOptions(
    top=None,
    ranges=(
        Range("block 0", ((0, 2),)),
        Range("blocks 0 and 1", ((0, 5),)),
        Range("all", ((0, 11),)),
        Range("cuts", ((4, 9),)),
        Range("holds", ((0, 7),)),
        Range("a value", ((9, 9),)),
    ),
    quantiles=(0.1, 0.5),
    linear=(
        Linear("index", np.arange(12.0)),
        Linear("of block 3", np.repeat([0.0, 2.0], [9, 3])),
        Linear("alike", np.array([*[3.0] * 6, *range(6)])),
    ),
)

counts = st.lists(st.integers(0, 30), min_size=1, max_size=12)


@pytest.fixture(scope="module")
def config() -> CollectionConfig:
    return collection(TABLE, **MERGING)


def statistic_of(spec: CollectionSpec, blocks: list[int], seed: int = 1) -> np.ndarray:
    """Return a statistic, given the number of reports in each block."""
    values = [block * 3 + i % 3 for block, n in enumerate(blocks) for i in range(n)]
    statistic = spec.mechanism.empty()
    reports = spec.mechanism.privatize(np.array(values), entropy=SeededEntropy(seed))
    spec.mechanism.accumulate(statistic, reports)
    return statistic


def totals_of(config: CollectionConfig, *parts: list[int]) -> tuple[WindowTotals, WindowTotals]:
    """Return the totals of parts: masked, and unmasked."""
    statistics = [statistic_of(config.spec, part, seed) for seed, part in enumerate(parts)]
    statistic, merged = add_parts(config.spec, config.minimum_block, statistics)
    n = sum(map(sum, parts))
    masked = WindowTotals(0, 1_000, statistic, n, late=0, rejected=0, merged=merged)
    return masked, replace(masked, statistic=sum(statistics), merged=None)


def chunks_of(blocks: list[int]) -> tuple[tuple[int, bytes], ...]:
    """Return a pane's chunks, one for each block, given the number of reports in each."""
    return tuple((number, encode_chunk(np.array([0, n, 0, 0]))) for number, n in enumerate(blocks))


@given(counts, st.integers(2, 20))
def test_every_reported_block_reaches_the_minimum(reports: list[int], minimum: int) -> None:
    found = np.array(reports)
    merged = merged_blocks(found, minimum)
    assert (found[~merged] >= minimum).all()
    assert merged.all() or not merged.any() or found[merged].sum() >= minimum
    assert merged.any() == (found < minimum).any()
    assert (merged == merged_blocks(found, minimum)).all()
    # The result does not show which of the small blocks are empty.
    assert (merged == merged_blocks(np.where(found < minimum, 0, found), minimum)).all()


@given(st.lists(st.lists(st.integers(0, 30), min_size=4, max_size=4), min_size=1, max_size=4))
def test_a_sum_merges_the_blocks_that_any_of_its_parts_merges(parts: list[list[int]]) -> None:
    config = collection(TABLE, **MERGING)
    masked, plain = totals_of(config, *parts)
    wanted = np.any([merged_blocks(np.array(part), 10) for part in parts], axis=0)
    merged = np.zeros(4, bool) if masked.merged is None else masked.merged
    assert (merged == wanted).all()
    # A block has four entries: merged blocks keep their sum alone, others all entries.
    entries = np.repeat(merged, 4)
    assert (masked.statistic[~entries] == plain.statistic[~entries]).all()
    assert masked.statistic[entries].sum() == plain.statistic[entries].sum()
    assert np.count_nonzero(masked.statistic[entries]) <= 1


@pytest.mark.grid
@pytest.mark.parametrize("method", ["normal", "bernstein", "anytime"])
@pytest.mark.parametrize("project", ["none", "blocks"])
def test_a_document_gives_the_unmerged_answer_or_none(
    config: CollectionConfig, method: Any, project: Any
) -> None:
    # Block 0 is too small; it is merged with block 1, the smallest of the others.
    masked, plain = totals_of(config, [1, 12, 30, 25])
    options = replace(EVERYTHING, method=method, project=project)
    told, full = (
        written(build_document(config, one, window=None, final=True, options=options))
        for one in (masked, plain)
    )
    assert told["merged"] == {"blocks": 2, "runs": [[0, 1]], "count": 13}
    assert told["n"] == full["n"] == 68
    shares = [entry["share"] for entry in told["distribution"]]
    assert [share is None for share in shares] == [True] * 6 + [False] * 6
    for of, names in {
        "distribution": [6, 7, 8, 9, 10, 11],
        "ranges": ["blocks 0 and 1", "all", "holds", "a value"],
        "linear": ["of block 3", "alike"],
    }.items():
        for got, want in zip(told[of], full.get(of), strict=True):
            if got.get("name", got.get("value")) in names:
                same = {k: pytest.approx(v, abs=1e-9) for k, v in want.items() if k != "name"}
                assert {k: v for k, v in got.items() if k != "name"} == same
            else:
                assert {v for k, v in got.items() if k not in ("name", "value")} == {None}
    assert told["ranges"][1]["count"] == pytest.approx(13)
    assert {(q["value"], q["low"], q["high"]) for q in told["quantiles"]} == {(None, None, None)}


def test_a_projection_spreads_merged_blocks_evenly(config: CollectionConfig) -> None:
    masked, _ = totals_of(config, [1, 12, 30, 25])
    options = replace(EVERYTHING, project="simplex")
    told = build_document(config, masked, window=None, final=True, options=options)
    named = {one.name: one for one in told.ranges}
    assert named["all"].share == pytest.approx(1.0)
    assert 0 <= named["blocks 0 and 1"].share <= 1
    assert named["cuts"].share is None


@pytest.mark.parametrize("project", ["none", "ordered", "simplex", "blocks"])
def test_a_document_does_not_depend_on_what_merged_blocks_hold(
    config: CollectionConfig, project: Any
) -> None:
    one = statistic_of(config.spec, [1, 12, 30, 25])
    other = one.copy()
    other[:8] = one[7::-1]
    documents = []
    for statistic in (one, other):
        masked, merged = add_parts(config.spec, 10, [statistic])
        totals = WindowTotals(0, 1_000, masked, 68, late=0, rejected=0, merged=merged)
        options = replace(EVERYTHING, project=project)
        documents.append(build_document(config, totals, window=None, final=True, options=options))
    assert documents[0] == documents[1]


def test_the_list_of_largest_shares_has_no_merged_value(config: CollectionConfig) -> None:
    masked, _ = totals_of(config, [1, 12, 30, 25])
    for top in (3, 8):
        options = EstimateOptions(top=top)
        told = build_document(config, masked, window=None, final=True, options=options)
        assert len(told.distribution) == min(top, 6)
        assert {one.value for one in told.distribution} <= {6, 7, 8, 9, 10, 11}


def test_a_document_of_merged_blocks_alone(config: CollectionConfig) -> None:
    masked, _ = totals_of(config, [5, 5, 5, 5])
    told = build_document(config, masked, window=None, final=True)
    assert told.distribution == []
    assert (told.merged.runs, told.merged.count) == ([[0, 3]], 20)
    *_, row = document_rows(told)
    assert dict(zip(HEADER, row, strict=True))["name"] == "0 to 3"


def test_a_document_without_small_blocks_does_not_mention_merging(config: CollectionConfig) -> None:
    masked, plain = totals_of(config, [11, 12, 30, 25])
    document = build_document(config, masked, window=None, final=True, options=EVERYTHING)
    assert document == build_document(config, plain, window=None, final=True, options=EVERYTHING)
    assert "merged" not in json.loads(document.to_json())


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"minimum_block": -1}, "minimum_block: expected at least 0, got -1"),
        ({"minimum_block": 101}, "minimum_block: expected at most minimum = 100, got 101"),
        ({"domain": {"size": 12}, "minimum_block": 5}, "minimum_block: expected 0, got 5"),
        ({**LABELS, "minimum_block": 5}, "unlike those of high-low over this domain"),
    ],
)
def test_an_impossible_minimum_of_blocks_is_refused(table: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        collection(TABLE, **{"minimum": 100, **table})


def test_the_privacy_statement_says_whether_blocks_are_merged() -> None:
    off, on, none = (
        collection(TABLE, **more).privacy.protected[-1]
        for more in ({"minimum": 20}, MERGING, {"minimum": 20, "domain": {"size": 12}})
    )
    assert "minimum_block, which would merge small blocks, is off" in off
    assert "fewer than 10 reports in a disclosed block: smaller blocks are merged" in on
    assert "minimum_block" not in none


@pytest.mark.parametrize("minimum_block", [0, 10])
def test_a_tag_reveals_no_more_than_the_answer(minimum_block: int) -> None:
    """A tag is a public digest: who knows the sum could try all ways to split it."""
    config = collection(TABLE, minimum=20, minimum_block=minimum_block)
    context = make_context(
        config.window, spec=config.spec, chunk=4, minimum=20, minimum_block=minimum_block
    )
    tags = set()
    for first, second in (([1, 12, 9, 9], [0, 3, 20, 30]), ([0, 3, 20, 30], [1, 12, 9, 9])):
        chunks = chunks_of(first) + chunks_of(second)
        taken = Snapshot(0, 1_000, chunks, 84, 0, 0, part_ends=(len(chunks),))
        told = {"options": config.options, "form": "json", "partial": False}
        job = Job(totals=add_up(context, taken), window=(0, 1_000), final=True, **told)
        tags.add(job.tag(config))
    # One part with the same counts has the same tag, even if merged blocks are split otherwise.
    for blocks, same in (([1, 15, 29, 39], True), ([2, 14, 29, 39], minimum_block > 0)):
        other = replace(taken, chunks=chunks_of(blocks), part_ends=(4,))
        assert (replace(job, totals=add_up(context, other)).tag(config) in tags) == same
    assert len(tags) == 1


async def test_http_answers_and_finals_merge_the_block_of_one() -> None:
    pipeline = serve_collections({"city": {**CITY, **MERGING}})
    city = pipeline.collections["city"]
    for partition, (place, n) in enumerate([([0, 0], 40), ([0, 7], 30)]):
        city.report(partition, [place] * n, times_ms=[START_MS] * n)
    city.report(1, [[4, 1]], times_ms=[START_MS])
    span = {"start": str(START_MS), "end": str(START_MS + MINUTE_MS)}
    ranges = {"range": ["0..2,0..4", "0..2,5..9", "3..5,0..4", "3..5,0..9"]}
    async with TestClient(TestServer(build_http(pipeline))) as client:
        still_open = await (await client.get(CITY_PATH, params=span)).json()
        assert (still_open["n"], still_open["withheld"], still_open["final"]) == (71, True, False)
        city.close(START_MS + 2 * MINUTE_MS)
        told = await (await client.get(CITY_PATH, params={**span, **ranges})).json()
        table = await client.get(CITY_PATH, params={**span, "top": "0", "format": "csv"})
        rows = (await table.text()).splitlines()
        final = final_document(city, START_MS)
        about = await (await client.get("/api/collections/city")).json()
    assert told["merged"] == final["merged"] == {"blocks": 3, "runs": [[1, 3]], "count": 31}
    assert [entry["count"] for entry in told["ranges"]] == [pytest.approx(40), None, None, None]
    places = [entry["value"] for entry in told["distribution"]]
    assert all(row <= 2 and column <= 4 for row, column in places)
    assert [row.split(",")[13:18] for row in rows if ",merged," in row] == [
        ["merged", "1 to 3", "", "", "31"]
    ]
    assert about["minimum_block"] == 10
    said = describe_merged(MergedBlocks(**told["merged"]))
    assert said.startswith("merged by minimum_block: blocks 1 to 3, together 31 reports")


async def test_small_blocks_of_an_attribute_are_merged() -> None:
    blocks = {
        "size": 4,
        "blocks": 2,
        "mechanism": "block-hadamard",
        "epsilon": 1.0,
        "probability": 0.5,
    }
    table = {
        "mechanism": "randomized-response",
        "epsilon": 1.0,
        "domain": {"attributes": {"home": blocks, "sex": {"size": 2, "probability": 0.5}}},
        "partitions": 1,
        "window": {"size": "1m", "idle": "off"},
        **MERGING,
    }
    served = serve_collections({"city": table})
    city = served.collections["city"]
    assert "smaller blocks are merged" in city.config.privacy.protected[-1]
    # About 30 reports are about homes, in two blocks, and 3 in one of them.
    people = [{"home": 3 if i < 5 else 1, "sex": 0} for i in range(60)]
    city.report(0, people, times_ms=[START_MS] * 60)
    async with TestClient(TestServer(build_http(served))) as client:
        path = "/api/collections/city/estimate"
        still_open = await (await client.get(path)).json()
        assert still_open["waiting"] == {
            "reports": 60, "until": "closing", "more": None, "because": "minimum_block"
        }  # fmt: skip
        city.close(START_MS + 2 * MINUTE_MS)
        told = await (await client.get(path)).json()
    home, sex = told["attributes"]
    assert home["merged"]["runs"] == [[0, 1]]
    assert home["merged"]["count"] == home["n"] >= 20
    assert "merged" not in sex
    assert not sex["withheld"]
