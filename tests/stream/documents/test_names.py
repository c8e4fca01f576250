"""Names of a collection, its values and blocks: shown, and never part of what devices send."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ldpstream.agents.cli.terminal.labels import ShownLabels
from ldpstream.agents.config import ConfigError, read_config
from ldpstream.agents.config.collection import CollectionConfig
from ldpstream.agents.config.query.capabilities import disclosed_blocks, read_options
from ldpstream.agents.web.description import describe_collection
from ldpstream.mechanisms.base.times import parse_time
from tests.stream.cli import invoke
from tests.stream.serving import serve_collections

TABLE: dict[str, Any] = {
    "mechanism": "block-hadamard",
    "epsilon": 1.0,
    "domain": {"size": 4, "blocks": 2},
    "minimum": 1,
}
RECORDS: dict[str, Any] = {
    "mechanism": "randomized-response",
    "domain": {"attributes": {"age": {"size": 3}, "mode": {"values": ["car", "bus"]}}},
}
NAMES: dict[str, Any] = {
    "title": "Answers of pupils",
    "description": "How often they read",
    "unit": "answers",
    "axes": ["answer"],
    "block_names": ["rarely", "often"],
    "value_labels": {"0": "never", "3": "daily"},
}


def read(base: Path = Path(), **changed: Any) -> CollectionConfig:
    tables = {"collection": {"pupils": {**TABLE, **changed}}}
    return read_config(tables, base=base, environment={}).collections["pupils"]


def shapes(*ids: object) -> str:
    features = [{"type": "Feature", "id": one, "geometry": None} for one in ids]
    return json.dumps({"type": "FeatureCollection", "features": features})


def test_names_change_neither_the_spec_nor_what_others_call_its_blocks() -> None:
    named, plain = read(**NAMES), read()
    assert named.spec.fingerprint == plain.spec.fingerprint
    assert named.spec.device_document() == plain.spec.device_document()
    blocks, others = disclosed_blocks(named.spec), disclosed_blocks(plain.spec)
    assert (blocks.names, others.names) == (("rarely", "often"), None)
    asked = read_options(named.options, named.spec, {"range": ["often"]})
    assert asked.ranges[0].values((4,)).tolist() == [2, 3]


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"title": ""}, "pupils.title: expected"),
        ({"axes": ["a", "b"]}, "pupils.axes: expected 1 names, one for each dimension, got 2"),
        ({"block_names": ["a"]}, "pupils.block_names: expected 2 different names"),
        ({"block_names": ["a", "a"]}, "pupils.block_names: expected 2 different names"),
        ({"block_names": ["\u00e9", "e\u0301"]}, "pupils.block_names: expected 2 different names"),
        ({"value_labels": {"4": "x"}}, "pupils.value_labels: expected labels of the domain"),
        ({"value_labels": {"0": {"0": "x"}}}, "pupils.value_labels: expected a text for each"),
        (
            {"value_labels": {"0": 3}},
            "value_labels.0: expected a text of 1 to 100 characters",
        ),
        (
            {"publish": {"sets": {"a": [1.5]}}},
            r"a\[0\]: expected a label, a text or a whole",
        ),
        ({**RECORDS, "value_labels": {"car": "x"}}, "value_labels.car: expected a table of labels"),
        (
            {**RECORDS, "value_labels": {"sex": {}}},
            "expected a table of labels for any of age, mode",
        ),
        (
            {**RECORDS, "value_labels": {"mode": {"tram": "x"}}},
            "value_labels.mode: expected labels",
        ),
        ({"domain": {"size": 4}, "geojson": "x.json", "mechanism": "l1-bits"}, "no blocks"),
        ({"geojson": "missing.json"}, "pupils.geojson: expected a GeoJSON file"),
        ({"geojson": "wrong.json"}, "in feature 1"),
        ({"annotations": "missing.csv"}, "pupils.annotations: expected a CSV file of events"),
        ({"annotations": "wrong.json"}, "pupils.annotations: expected a time, RFC 3339, and a"),
    ],
)
def test_names_that_do_not_fit_are_refused(
    tmp_path: Path, changed: dict[str, Any], error: str
) -> None:
    (tmp_path / "wrong.json").write_text(shapes(0, 2))
    with pytest.raises(ConfigError, match=error):
        read(tmp_path, **changed)


def test_labels_of_attributes_have_names_of_their_own() -> None:
    labels = {"age": {"1": "grown up"}, "mode": {"bus": "Bus"}}
    config = read(**RECORDS | {"epsilon": 6.0}, value_labels=labels)
    shown = ShownLabels.of_domain(config.spec.domain, config.names.value_labels)
    assert [shown.text(1, "age"), shown.text("bus", "mode")] == ["grown up", "Bus"]
    assert [shown.text(1), shown.text("car", "mode")] == ["1", "car"]
    assert shown.text([1, "bus"], "age:mode") == "[grown up, Bus]"
    served = serve_collections({"pupils": {**TABLE, **RECORDS, "value_labels": labels}})
    described = describe_collection(served.collections["pupils"])
    assert {one.name: one.value_labels for one in described.attributes} == labels


def test_annotations_are_read_again_and_none_is_shown_of_a_broken_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "events.csv"
    file.write_text('2026-06-02T00:00:00Z,"Rain, all day"\n\n2026-06-01T12:00:00+02:00,=1+1\n')
    names = read(tmp_path, annotations="events.csv").names
    assert names.annotations == [
        (parse_time("2026-06-01T10:00:00Z"), "=1+1"),
        (parse_time("2026-06-02T00:00:00Z"), "Rain, all day"),
    ]
    file.write_text("2026-06-03T00:00:00Z,Sun\n")
    assert [text for _, text in names.annotations] == ["Sun"]
    file.write_text("yesterday,Sun\n")
    assert names.annotations == []
    assert "row 1 of events.csv" in caplog.text


def test_shapes_name_blocks_by_number_or_name(tmp_path: Path) -> None:
    (tmp_path / "shapes.json").write_text(shapes(0, "often"))
    found = read(tmp_path, **NAMES, geojson="shapes.json")
    assert json.loads(found.names.geojson or b"")["features"][1]["id"] == "often"


def test_shapes_name_blocks_in_any_of_unicodes_spellings(tmp_path: Path) -> None:
    (tmp_path / "shapes.json").write_text(shapes("e\u0301", "b"))
    found = read(tmp_path, block_names=["\u00e9", "b"], geojson="shapes.json")
    assert json.loads(found.names.geojson or b"")["features"][0]["id"] == "\u00e9"


def test_people_read_names_where_values_are_printed(tmp_path: Path) -> None:
    file = tmp_path / "ldpstream.toml"
    file.write_text(
        '[collection.pupils]\nmechanism = "block-hadamard"\nepsilon = 8.0\nminimum = 1\n'
        'domain = { size = 4, blocks = 2 }\ntitle = "Answers of pupils"\n'
        'value_labels = { 0 = "never", 3 = "daily" }\n'
    )
    values = tmp_path / "values.csv"
    values.write_text("\n".join(["0", "3", "1"] * 50))
    options = ("-c", str(file), "pupils")
    reports = tmp_path / "reports.jsonl"
    reports.write_text(invoke("privatize", *options, str(values)).stdout)
    table = invoke("estimate", *options, str(reports)).stdout
    assert "Answers of pupils (pupils)" in table
    assert "daily" in table
    assert "never" in table
    file.write_text(file.read_text() + 'block_names = ["rarely", "often"]\n')
    areas = invoke("estimate", "--areas", *options, str(reports)).stdout
    assert re.search(r"rarely +│ +2", areas), areas
    document = json.loads(invoke("estimate", "--json", *options, str(reports)).stdout)
    assert document["title"] == "Answers of pupils"
    assert {entry["value"] for entry in document["distribution"]} == {0, 1, 2, 3}
