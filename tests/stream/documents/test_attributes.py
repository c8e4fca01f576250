"""Collections of records: attributes and pairs of them, over HTTP, as commands, in Python."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiohttp.test_utils import TestClient, TestServer

import ldpstream as ldp
from ldpstream.agents.document.model import EstimateDocument
from ldpstream.agents.web import build_http
from ldpstream.mechanisms import ValueOutsideDomainError
from tests.replicas import final_document
from tests.seeded import SeededEntropy
from tests.stream.asking import ask, post
from tests.stream.cli import certified, configured, invoke, refused
from tests.stream.querying import windows
from tests.stream.serving import MINUTE_MS, START_MS, serve, serve_collections

SURVEY: dict[str, Any] = {
    "mechanism": "subset-selection",
    "epsilon": 3.0,
    "domain": {
        "attributes": {
            "age": {"size": 6, "mechanism": "tree", "epsilon": 3.0},
            "answer": {"values": ["no", "yes"]},
            "home": {"grid": [2, 3]},
        }
    },
    "partitions": 1,
    "minimum": 1,
    "window": {"size": "1m", "idle": "off", "future": "1m", "retention": "1h"},
}
PATH = "/api/collections/survey/estimate"
COLLECTION = ldp.define_collection("survey", **SURVEY)
TOML = """
[collection.survey]
mechanism = "subset-selection"
epsilon = 3.0
minimum = 1

[collection.survey.domain.attributes]
age = { size = 6, mechanism = "tree", epsilon = 3.0 }
answer = { values = ["no", "yes"] }
home = { grid = [2, 3] }
"""


def people(n: int, seed: int = 1) -> list[dict[str, Any]]:
    """Return records: low ages are more frequent, three in four say yes, homes are uniform."""
    rng = np.random.default_rng(seed)
    ages = np.minimum(rng.integers(0, 6, n), rng.integers(0, 6, n))
    return [
        {"age": int(age), "answer": "yes" if yes else "no", "home": [int(row), int(column)]}
        for age, yes, row, column in zip(
            ages, rng.random(n) < 0.75, rng.integers(0, 2, n), rng.integers(0, 3, n), strict=True
        )
    ]


async def test_each_attribute_has_a_document_and_is_asked_for_by_name() -> None:
    pipeline = serve_collections({"survey": SURVEY})
    served = pipeline.collections["survey"]
    served.report(0, people(3000), times_ms=[START_MS] * 3000)
    served.close(START_MS + MINUTE_MS)
    async with TestClient(TestServer(build_http(pipeline))) as client:
        whole = await ask(client, PATH)
        assert [one["attribute"] for one in whole["attributes"]] == ["age", "answer", "home"]
        assert (whole["n"], whole.get("distribution", [])) == (3000, [])
        assert sum(one["n"] for one in whole["attributes"]) == 3000
        for one in whole["attributes"]:
            assert one["of"] == 3000
            assert one == await ask(client, f"{PATH}?attribute={one['attribute']}")
        final = final_document(served, START_MS)
        assert final == whole
        age = await ask(client, f"{PATH}?attribute=age&range=0..2&quantile=0.5&top=all")
        assert [one["value"] for one in age["distribution"]] == list(range(6))
        assert age["ranges"][0]["low"] < 0.75 < age["ranges"][0]["high"]
        assert age["quantiles"][0]["value"] in (1, 2)
        asked = {"attribute": "answer", "linear": [{"name": "yes", "weights": {"yes": 1}}]}
        answer = await post(client, asked, path=PATH)
        assert answer["linear"][0]["low"] < 0.75 < answer["linear"][0]["high"]
        home = await post(client, {"attribute": "home", "areas": True}, path=PATH)
        assert home["areas"]["entries"]
        told = await ask(client, "/api/collections/survey")
        assert told["domain"]["kind"] == "attributes"
        assert [one["mechanism"] for one in told["attributes"]] == [
            "tree", "subset-selection", "subset-selection",
        ]  # fmt: skip
        assert sum(one["probability"] for one in told["attributes"]) == pytest.approx(1)
        assert told["privacy"]["unprotected"] is None
        assert "one of 3 attributes" in told["privacy"]["protected"][0]
        rows = list(
            csv.DictReader(io.StringIO(await (await client.get(f"{PATH}?format=csv")).text()))
        )
        assert [row["attribute"] for row in rows] == ["age"] * 6 + ["answer"] * 2 + ["home"] * 6
        metrics = await (await client.get("/metrics")).text()
        assert 'query="answer.value:yes"' in metrics


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("range=0..2", "range: expected attribute=NAME as well, one of age, answer, home"),
        ("quantile=0.5", "quantile: expected attribute=NAME as well, one of age, answer, home"),
        ("attribute=ages", "attribute: expected one of age, answer, home, got 'ages'"),
        ("attribute=answer&range=0..1", "range: expected"),
        ("method=anytime", "method: expected another method, such as padded, or estimand"),
    ],
)
async def test_queries_that_no_attribute_can_answer_are_refused_by_name(
    query: str, said: str
) -> None:
    pipeline = serve_collections({"survey": SURVEY})
    pipeline.collections["survey"].report(0, people(100), times_ms=[START_MS] * 100)
    async with TestClient(TestServer(build_http(pipeline))) as client:
        assert (await ask(client, f"{PATH}?{query}", status=400))["error"].startswith(said)


async def test_a_withheld_document_says_how_many_reports_wait_and_what_for() -> None:
    pipeline = serve_collections({"survey": SURVEY | {"minimum": 100}})
    pipeline.collections["survey"].report(0, people(30), times_ms=[START_MS] * 30)
    async with TestClient(TestServer(build_http(pipeline))) as client:
        whole = await ask(client, PATH)
        assert whole["withheld"]
        assert not {"attributes", "attribute", "of"} & whole.keys()
        ages = await ask(client, f"{PATH}?attribute=age")
        assert (ages["withheld"], ages["attribute"], ages["of"]) == (True, "age", 30)
        assert ages["n"] == ages["waiting"]["reports"] < 30
        assert ages["waiting"]["more"] == 200 - ages["n"]
        assert (whole["n"], whole["waiting"]["reports"]) == (30, 30)
        assert whole["waiting"]["more"] == min(
            [
                (await ask(client, f"{PATH}?attribute={name}"))["waiting"]["more"]
                for name in ("age", "answer", "home")
            ]
        )


async def test_no_attribute_is_answered_from_fewer_reports_than_the_minimum() -> None:
    pipeline = serve_collections({"survey": SURVEY | {"minimum": 100}})
    served = pipeline.collections["survey"]
    for minute, n in enumerate((101, 140, 600)):
        served.report(0, people(n, seed=minute), times_ms=[START_MS + minute * MINUTE_MS] * n)
    served.close(START_MS + 3 * MINUTE_MS)
    async with TestClient(TestServer(build_http(pipeline))) as client:
        seen: dict[str, set[tuple[str, str, int]]] = {}
        for minute in range(3):
            since = f"start={START_MS + minute * MINUTE_MS}"
            for name in ("age", "answer", "home"):
                until = f"end={START_MS + (minute + 1) * MINUTE_MS}"
                told = await ask(client, f"{PATH}?attribute={name}&{since}&{until}")
                assert told["final"]
                if told["withheld"]:
                    assert told["waiting"]["until"] == "later"
                else:
                    span = told.get("span", told["window"])
                    seen.setdefault(name, set()).add((span["start"], span["end"], told["n"]))
        for spans in seen.values():
            # Every span is one part.
            assert min(n for *_, n in spans) >= 100
            assert len({start for start, *_ in spans}) == len(spans)
        final = final_document(served, START_MS)
    assert final["withheld"]
    assert final["waiting"]["until"] == "later"


def lines_of(records: list[dict[str, Any]]) -> str:
    """Return CSV with columns in any order, one of which belongs to no attribute."""
    rows = [
        f"{one['home'][1]},{one['answer']},x,{one['age']},{one['home'][0]}\n" for one in records
    ]
    return "".join(["home.2,answer,extra,age,home.1\n", *rows])


def test_value_lines_have_a_column_for_each_attribute_by_name(tmp_path: Path) -> None:
    file = configured(tmp_path, TOML)
    reports = invoke("privatize", "-c", file, "survey", stdin=lines_of(people(2000)))
    assert reports.exit_code == 0, reports.output
    asked = invoke(
        "estimate", "-c", file, "survey", "--attribute", "answer", "--json", stdin=reports.output
    )
    document = EstimateDocument.model_validate_json(asked.output)
    yes = {one.value: one for one in document.distribution}["yes"]
    assert yes.share is not None
    assert yes.se is not None
    assert abs(yes.share - 0.75) < 7 * yes.se
    assert (document.of, document.attribute) == (2000, "answer")
    shown = certified(file, "survey")[0]
    assert shown["pass"]
    assert set(shown["attributes"]) == {"age", "answer", "home"}


@pytest.mark.parametrize(
    ("stdin", "options", "said"),
    [
        ("1,yes,0,0\n", (), "stdin: line 1: expected column names with 'age' once among them"),
        (lines_of([{"age": 7, "answer": "yes", "home": [0, 0]}]), (),
         "stdin: line 2: expected as age an integer in 0..5"),
        ("age\n1\n", ("--columns", "age"), "--columns: expected none, because survey"),
        ("age\n1\n", ("--clamp",), "--clamp: expected a collection with only numbers, which"),
    ],
)  # fmt: skip
def test_bad_lines_are_refused_with_their_attribute(
    tmp_path: Path, stdin: str, options: tuple[str, ...], said: str
) -> None:
    file = configured(tmp_path, TOML)
    assert refused(invoke("privatize", "-c", file, "survey", *options, stdin=stdin)).startswith(
        said
    )


def test_tables_and_mappings_are_privatized_by_column() -> None:
    records = people(500)
    columns: dict[str, Any] = {name: [one[name] for one in records] for name in records[0]}
    forms = [records, columns, columns | {"age": np.array(columns["age"]), "id": range(500)}]
    pandas = pytest.importorskip("pandas")
    forms.append(pandas.DataFrame(columns))
    drawn = [ldp.privatize(COLLECTION, one, entropy=SeededEntropy(4)) for one in forms]
    assert all(np.array_equal(one.reports, drawn[0].reports) for one in drawn)
    document = ldp.estimate(drawn[0])
    assert len(document.about("age").to_columns()["label"]) == 6
    with pytest.raises(ValueError, match=r"one attribute of records: use document\.about"):
        document.to_columns()
    with pytest.raises(ValueError, match="expected one of age, answer, home, got 'place'"):
        document.about("place")
    with pytest.raises(ValueError, match="answer: expected a column of this name"):
        ldp.privatize(COLLECTION, {"age": [1], "home": [[0, 0]]})
    with pytest.raises(ValueError, match="columns of one length"):
        ldp.privatize(COLLECTION, columns | {"age": [1]})
    bad = columns | {"answer": ["yes"] * 7 + ["maybe"] + ["no"] * 492}
    with pytest.raises(ValueOutsideDomainError, match="position 7: expected as answer one of the"):
        ldp.privatize(COLLECTION, bad)
    assert len(ldp.privatize(COLLECTION, bad, skip_bad=True)) == 499


def test_three_attributes_of_ten_values_have_the_documented_error() -> None:
    """10,000 devices, epsilon 1: a share's error is 0.031; over the product domain it is 0.182."""
    names = ("a", "b", "c")
    collection = ldp.define_collection(
        "survey",
        mechanism="subset-selection",
        epsilon=1.0,
        domain={"attributes": {name: {"size": 10} for name in names}},
    )
    rng = np.random.default_rng(3)
    values = {name: rng.integers(0, 10, 10_000) for name in names}
    reports = ldp.privatize(collection, values, entropy=SeededEntropy(3))
    for one in ldp.estimate(reports).attributes:
        errors = [entry.se for entry in one.distribution if entry.se is not None]
        assert len(errors) == 10
        assert max(errors) <= 0.031 * np.sqrt(10_000 / 3 / one.n)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"publish": {"ranges": {"x": [1, 2]}}}, "publish.ranges: expected none for records"),
        ({"publish": {"quantiles": [0.5]}}, "publish.quantiles: expected none for records"),
        (
            {"publish": {"top": 900}},
            "publish.top: expected at most 1,000 values over all attributes",
        ),
        ({"publish": {"attributes": {"ages": {"top": 3}}}}, "attributes.ages: expected age, answ"),
        (
            {"publish": {"attributes": {"age": {"ranges": {"x": [1, 9]}}}}},
            "publish.attributes.age.ranges.x: expected",
        ),
        (
            {"publish": {"attributes": {"answer": {"quantiles": [0.5]}}}},
            "publish.attributes.answer.quantiles: expected",
        ),
        ({"minimum_block": 5, "minimum": 9}, "minimum_block: expected 0, got 5"),
        ({"method": "anytime"}, "method: expected another method"),
    ],
)
def test_keys_that_records_do_not_support_are_refused(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=r"collection\.survey") as caught:
        ldp.define_collection("survey", **(SURVEY | keys))
    assert said in str(caught.value)


def test_plan_proposes_how_often_attributes_are_drawn(tmp_path: Path) -> None:
    written = TOML.replace("size = 6,", "size = 6, probability = 0.8,")
    written = written.replace('"yes"]', '"yes"], probability = 0.1')
    file = configured(tmp_path, written.replace("[2, 3]", "[2, 3], probability = 0.1"))
    command = ("plan", "-c", file, "survey", "--respondents", "10000")
    plan = json.loads(invoke(*command, "--json").output)
    assert [one["probability"] for one in plan["attributes"]] == [0.8, 0.1, 0.1]
    level = [one["proposed_error"] for one in plan["attributes"]]
    assert max(level) / min(level) < 1.01
    assert max(level) < max(one["error"] for one in plan["attributes"])
    proposed = {one["attribute"]: one["proposed"] for one in plan["attributes"]}
    own: Any = COLLECTION.spec.mechanism
    assert list(proposed.values()) == pytest.approx([units / 2**64 for units in own.probabilities])
    assert "the proposed probabilities" in invoke(*command).output
    one = json.loads(invoke(*command, "--attribute", "answer", "--json").output)
    assert one["respondents"] == 1000
    said = refused(invoke(*command, "--width", "0.1"))
    assert said == "--width: expected --attribute NAME as well, one of age, answer, home"
    assert refused(invoke(*command, "--attribute", "x")).startswith("--attribute: expected age")
    with pytest.raises(ValueError, match="survey: expected one attribute of the records"):
        ldp.plan(COLLECTION, respondents=10)


async def test_finals_hold_what_is_published_of_each_attribute() -> None:
    published = {
        "top": 2,
        "attributes": {
            "age": {"ranges": {"young": [0, 2]}, "quantiles": [0.5], "top": 0},
            "answer": {"linear": {"yes": [0, 1]}},
        },
    }
    pipeline = serve_collections({"survey": SURVEY | {"publish": published}})
    served = pipeline.collections["survey"]
    served.report(0, people(3000), times_ms=[START_MS] * 3000)
    served.close(START_MS + MINUTE_MS)
    async with TestClient(TestServer(build_http(pipeline))) as client:
        final = final_document(served, START_MS)
        age, answer, home = final["attributes"]
        assert (len(age["distribution"]), age["ranges"][0]["name"]) == (0, "young")
        assert age["ranges"][0]["low"] < 0.75 < age["ranges"][0]["high"]
        assert age["quantiles"][0]["p"] == 0.5
        assert answer["linear"][0]["low"] < 0.75 < answer["linear"][0]["high"]
        assert (len(home["distribution"]), home["ranges"]) == (2, [])
        for one in (age, answer, home):
            assert one == await ask(client, f"{PATH}?attribute={one['attribute']}")
        other = await ask(client, f"{PATH}?top=1&confidence=0.9")
        assert [len(one["distribution"]) for one in other["attributes"]] == [1, 1, 1]
        assert {one["confidence"] for one in other["attributes"]} == {0.9}
        assert other["attributes"][0]["ranges"][0]["name"] == "young"
        told = (await ask(client, "/api/collections/survey"))["attributes"]
        assert [one["ranges"] for one in told] == [["young"], [], []]
        assert [one["top"] for one in told] == [0, 2, 2]
        metrics = await (await client.get("/metrics")).text()
        assert 'query="age.range:young"' in metrics


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
PAIRS = """
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
HABITS_PATH = "/api/collections/habits/estimate"
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
        pair = await ask(client, f"{HABITS_PATH}?attribute=answer:smokes&simultaneous=true")
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
        asked = await ask(client, f"{HABITS_PATH}?attribute=answer:smokes&range=0..1", status=400)
        assert asked["error"].startswith("range: expected a domain with an order")
        metrics = await (await client.get("/metrics")).text()
        assert 'query="answer:smokes.top:1"' in metrics


def test_a_terminal_lists_every_combination_of_a_pair(tmp_path: Path) -> None:
    file = configured(tmp_path, PAIRS)
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
