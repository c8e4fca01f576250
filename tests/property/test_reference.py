"""The reference of configuration keys: complete, and a schema."""

import tomllib

import jsonschema
import pytest
from click.testing import CliRunner

from ldpstream.agents.cli.commands.configuration import keys
from ldpstream.agents.cli.configuration import TEMPLATE, json_schema, page
from tests.property.configs import refusal, with_keys

CHECK = jsonschema.Draft202012Validator(json_schema()).validate


def test_the_command_prints_the_page_with_every_table_and_key():
    printed = CliRunner().invoke(keys).output
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
