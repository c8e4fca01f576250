"""The reference of configuration keys: complete, a schema, and examples that load."""

import shutil
import tomllib
from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

import jsonschema
import pytest
from click.testing import CliRunner

from ldpstream.agents.cli.commands.configuration import keys as keys_command
from ldpstream.agents.cli.configuration import TEMPLATE, json_schema, page
from ldpstream.agents.config import load_config
from ldpstream.agents.config.tables import EXAMPLES, toml
from tests.pages import ROOT
from tests.property.configs import refusal, with_keys

SCHEMA: Final = json_schema()
TABLES: Final = {
    "worker": "WorkerConfig",
    "gateway": "GatewayConfig",
    "": "CollectionTable",
    "window.": "WindowTable",
    "spread.": "SpreadTable",
    "publish.": "PublishTable",
    "publish.attributes.age.": "AttributeTable",
}
CHANNEL: Final = ROOT / "tests/vectors/channels/classical.json"  # of five values
PARTS: Final[Any] = EXAMPLES["attributes"]
LABELS: Final = {"values": EXAMPLES["values"]}
INTERVAL: Final = {"interval": EXAMPLES["interval"], "bins": EXAMPLES["bins"]}
RECORDS: Final = {"attributes": PARTS}
MATRIX: Final = {"mechanism": "matrix", "strategy": "identity"}
NEEDED: Final[Mapping[str, Mapping[str, Any]]] = {
    "sensitive": {"mechanism": "high-low", "domain": LABELS},
    "epsilon_outside": {"mechanism": "groups", "domain": {"size": 12, "blocks": 6}},
    "epsilon_rest": {"mechanism": "groups", "domain": LABELS, "sensitive": EXAMPLES["sensitive"]},
    "share": {"mechanism": "groups", "domain": LABELS, "sensitive": EXAMPLES["sensitive"]},
    "policy": MATRIX,
    "prior": {"mechanism": "lip", "domain": {"size": 2}},
    "strategy": MATRIX,
    "workload": {"mechanism": "tree"},
    "scales": {**MATRIX, "domain": {"size": 3}},
    "channel": {"mechanism": "optimal", "domain": {"size": 5}},
    "weights": {"mechanism": "l1-geometric"},
    "spread.reports": {"spread.horizon": "1d"},
    "spread.horizon": {"spread.reports": 4},
    "axes": {"domain": {"grid": [24, 6]}},
    "block_names": {"domain": {"size": 24, "blocks": 12}},
    "geojson": {"domain": {"size": 24, "blocks": 12}},
    "publish.linear": {"domain": LABELS},
    "publish.sets": {"domain": LABELS},
    "publish.attributes": {"domain": RECORDS},
    "publish.attributes.age.ranges": {"domain": RECORDS, "domain.attributes.age.size": 24},
    "publish.attributes.age.quantiles": {"domain": RECORDS},
    "publish.attributes.age.linear": {"domain": RECORDS, "domain.attributes.age": LABELS},
    "publish.attributes.age.sets": {"domain": RECORDS, "domain.attributes.age": LABELS},
    "domain.interval": {"domain": INTERVAL},
    "domain.bins": {"domain": INTERVAL},
    "domain.rounding": {"domain": INTERVAL, "mechanism": "l1-geometric"},
    "domain.blocks": {"domain": {"size": 24}},
    "domain.pairs": {"domain": RECORDS},
    "domain.header": {"domain": {"file": EXAMPLES["file"]}},
    "domain.attributes.age.mechanism": {"domain": RECORDS, "domain.attributes.age.epsilon": 1.0},
    "domain.attributes.age.probability": {
        "domain": RECORDS,
        "domain.attributes.smokes.probability": 0.5,
    },
    "window.timezone": {"window.size": "1d"},
    "window.week_start": {"window.size": "1w"},
}
"""What else a collection needs for the example of a key to be valid."""


def keys() -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield the table (a path in a collection, or `worker`, `gateway`), name and schema of keys."""
    for table, name in TABLES.items():
        for key, one in SCHEMA["$defs"][name]["properties"].items():
            if key not in ("window", "spread", "publish"):
                yield table, key, one
    domain = SCHEMA["$defs"]["CollectionTable"]["properties"]["domain"]["properties"]
    yield from (("domain.", key, one) for key, one in domain.items())
    attribute = domain["attributes"]["additionalProperties"]["properties"]
    own = ("mechanism", "probability")
    yield from (("domain.attributes.age.", key, attribute[key]) for key in own)


def holding(table: str, key: str, example: object) -> dict[str, Any]:
    """Return the tables of a file with the example, and with what it needs."""
    path = f"{table}{key}"
    if table in ("worker", "gateway"):
        pair = {"certificate": {"key": "k.pem"}, "key": {"certificate": "c.pem"}}.get(key, {})
        return {table: {key: example, **pair}, "collection": {"checkins": with_keys({})}}
    domain = {} if table == "domain." else {"size": 24}
    collection = with_keys(deepcopy({"domain": domain, **NEEDED.get(path, {}), path: example}))
    if collection["mechanism"] == "optimal":
        del collection["epsilon"]
    return {"collection": {"checkins": collection}}


@pytest.mark.parametrize(("table", "key", "one"), list(keys()))
def test_a_key_has_a_default_or_an_example(table: str, key: str, one: Mapping[str, Any]):
    assert one.get("default") not in (None, [], {}) or one.get("examples")


@pytest.mark.parametrize(
    ("table", "key", "example"),
    [(table, key, each) for table, key, one in keys() for each in one.get("examples", ())],
)
def test_each_example_loads_as_the_page_writes_it(
    table: str, key: str, example: object, tmp_path: Path
):
    (tmp_path / "places.csv").write_text("home\nwork\nshop\n")
    (tmp_path / "districts.geojson").write_text('{"type": "FeatureCollection", "features": []}')
    (tmp_path / "events.csv").write_text("2026-06-01T12:00:00+02:00,Fares fell\n")
    (tmp_path / "before-june.toml").write_text(
        "[collection.checkins]\n" + lines(with_keys({"epsilon": 2.0}))
    )
    shutil.copy(CHANNEL, tmp_path / "roads.channel")
    tables = holding(table, key, example)
    written = "".join(
        f"[{name}]\n{lines(keys)}"
        for name, keys in [
            *((name, keys) for name, keys in tables.items() if name != "collection"),
            ("collection.checkins", tables["collection"]["checkins"]),
        ]
    )
    assert tomllib.loads(written) == tables
    jsonschema.validate(tables, SCHEMA)
    file = tmp_path / "ldpstream.toml"
    file.write_text(written)
    assert load_config(file, environment={}).collections.keys() == {"checkins"}


def lines(table: Mapping[str, Any]) -> str:
    return "".join(f"{key} = {toml(value)}\n" for key, value in table.items())


CHECK = jsonschema.Draft202012Validator(json_schema()).validate


def test_the_command_prints_the_page_with_every_table_and_key():
    printed = CliRunner().invoke(keys_command).output
    assert printed == page()
    for name in ("[kafka]", "[worker]", "[gateway]", "[collection.NAME]", "domain", "window"):
        assert f"\n## `{name}`\n" in printed
    for table in json_schema()["$defs"].values():
        assert all(f"`{key}`" in printed for key in table["properties"])


def test_every_key_has_a_meaning():
    for name, table in json_schema()["$defs"].items():
        for key, one in table["properties"].items():
            assert one.get("description") or "$ref" in str(one), f"{name}.{key}"


def test_the_schema_takes_what_init_writes():
    CHECK(tomllib.loads(TEMPLATE))


@pytest.mark.parametrize("epsilon", [2.0, [2.0, 1.5]])
def test_the_schema_takes_the_budgets_of_permanent_draws(epsilon: object):
    hold = {"windows": 4, "epsilon": epsilon}
    CHECK({"collection": {"coins": with_keys({"hold": hold})}})
    with pytest.raises(jsonschema.ValidationError):
        CHECK({"collection": {"coins": with_keys({"hold": hold | {"epsilon": [2.0]}})}})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("minimun", 3),
        ("minimum", -1),
        ("precision", "1 second"),
        ("rejected", "drop"),
        ("domain", {"length": 3}),
        ("window.size", "1y"),
        ("mechanism", "hadamard"),
    ],
)
def test_the_schema_refuses_what_the_file_refuses(key: str, value: object):
    CHECK({"collection": {"checkins": with_keys({})}})
    tables = {"collection": {"checkins": with_keys({key: value})}}
    with pytest.raises(jsonschema.ValidationError):
        CHECK(tables)
    assert refusal(tables)
