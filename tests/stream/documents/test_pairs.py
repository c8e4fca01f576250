"""Pairs of attributes: over HTTP, in a terminal, in Python as two-way tables, in finals."""

from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

import ldpstream as ldp
from ldpstream.agents.web import build_http
from tests.replicas import final_document
from tests.seeded import SeededEntropy
from tests.stream.asking import ask
from tests.stream.cli import configured, invoke, refused
from tests.stream.querying import windows
from tests.stream.serving import MINUTE_MS, START_MS, serve, serve_collections

HABITS: dict[str, Any] = {
    "mechanism": "subset-selection",
    "epsilon": 4.0,
    "domain": {
        "attributes": {"answer": {"values": ["yes", "no"]}, "smokes": {"size": 3}},
        "pairs": [["answer", "smokes"]],
    },
    "partitions": 1,
    "minimum": 1,
    "window": {"size": "1m", "idle": "off", "future": "1m", "retention": "1h"},
    "publish": {"attributes": {"answer:smokes": {"top": 6}}},
}
TOML = """
[collection.habits]
mechanism = "subset-selection"
epsilon = 4.0
minimum = 1

[collection.habits.domain]
pairs = [["answer", "smokes"]]

[collection.habits.domain.attributes]
answer = { values = ["yes", "no"] }
smokes = { size = 3 }
"""
PATH = "/api/collections/habits/estimate"
N = 4000
RECORDS: list[dict[str, Any]] = [
    {"answer": "yes" if i % 4 else "no", "smokes": 0 if i % 4 else 2} for i in range(N)
]
"""Three in four answer yes and have 0, the others answer no and have 2."""


async def test_open_windows_of_attributes_have_the_bounds_that_exist_for_them() -> None:
    pipeline = serve_collections({"habits": HABITS})
    pipeline.collections["habits"].report(0, RECORDS, times_ms=[START_MS] * N)
    asked = "habits", "--attribute", "answer"
    async with serve(pipeline) as url:
        (found,) = await windows(url, *asked)
        assert (found["final"], found["method"]) == (False, "padded")
        (found,) = await windows(url, *asked, "--estimand", "population")
        assert (found["final"], found["method"]) == (False, "anytime")


async def test_pairs_are_asked_for_and_published_as_attributes_are() -> None:
    pipeline = serve_collections({"habits": HABITS})
    served = pipeline.collections["habits"]
    served.report(0, RECORDS, times_ms=[START_MS] * N)
    served.close(START_MS + MINUTE_MS)
    async with TestClient(TestServer(build_http(pipeline))) as client:
        pair = await ask(client, f"{PATH}?attribute=answer:smokes&simultaneous=true")
        assert (pair["attribute"], pair["of"]) == ("answer:smokes", N)
        bounds = {tuple(one["value"]): (one["low"], one["high"]) for one in pair["distribution"]}
        truth = {("yes", 0): 0.75, ("no", 2): 0.25}
        assert len(bounds) == 6
        assert all(low <= truth.get(of, 0) <= high for of, (low, high) in bounds.items())
        assert bounds["yes", 0][0] > bounds["no", 2][1]
        final = final_document(served, START_MS)
        assert len(final["attributes"][2]["distribution"]) == 6
        told = (await ask(client, "/api/collections/habits"))["attributes"][2]
        assert (
            told["domain"] | {"kind": "pair", "shape": [2, 3], "ordered": False} == told["domain"]
        )
        asked = await ask(client, f"{PATH}?attribute=answer:smokes&range=0..1", status=400)
        assert asked["error"].startswith("range: expected a domain with an order")
        metrics = await (await client.get("/metrics")).text()
        assert 'query="answer:smokes.top:1"' in metrics


def test_a_terminal_lists_every_combination_of_a_pair(tmp_path: Path) -> None:
    file = configured(tmp_path, TOML)
    lines = "smokes,answer\n" + "".join(f"{one['smokes']},{one['answer']}\n" for one in RECORDS)
    reports = invoke("privatize", "-c", file, "habits", stdin=lines).output
    command = ("estimate", "-c", file, "habits", "--attribute", "answer:smokes")
    shown = invoke(*command, "--top", "all", stdin=reports).output
    rows = [[cell.strip() for cell in line.strip("┃│").split("│")] for line in shown.splitlines()]
    shares = {row[0]: float(row[1].removesuffix("%")) for row in rows if row[0].startswith("[")}
    assert shares.keys() == {
        f"[{say}, {cigarettes}]" for say in ("yes", "no") for cigarettes in range(3)
    }
    assert sorted(shares, key=shares.__getitem__)[-2:] == ["[no, 2]", "[yes, 0]"]
    plan = ("plan", "-c", file, "habits", "--respondents", "1000", "--attribute")
    assert '"value": [' in invoke(*plan, "answer:smokes", "--json").output.replace("\n", "")
    assert refused(invoke(*plan, "smokes:answer")).endswith(
        "expected answer, smokes, answer:smokes, got smokes:answer"
    )


def test_a_frame_of_a_pair_has_the_labels_of_both() -> None:
    collection = ldp.define_collection("habits", **HABITS)
    columns = {name: [one[name] for one in RECORDS] for name in ("smokes", "answer")}
    reports = ldp.privatize(collection, columns, entropy=SeededEntropy(1))
    pair = ldp.estimate(reports).about("answer:smokes")
    found = pair.to_columns()
    assert found["label"] == list(zip(found["first"], found["second"], strict=True))
    assert "first" not in ldp.estimate(reports).about("answer").to_columns()
    pytest.importorskip("pandas")
    table = pair.to_frame().pivot(index="first", columns="second", values="share")
    assert table.loc["yes", 0] > 0.6
    assert table.idxmax(axis="columns").to_dict() == {"yes": 0, "no": 2}
    assert len(ldp.to_frame([pair, pair])["first"]) == 12
