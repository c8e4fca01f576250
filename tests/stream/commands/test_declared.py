"""What may be asked is declared once: every way of asking offers it, and ETags depend on it."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest
from aiohttp.test_utils import TestClient, TestServer

from ldpstream.agents import client as python_client
from ldpstream.agents.cli.commands.answers import query
from ldpstream.agents.cli.commands.files import estimate
from ldpstream.agents.cli.estimate import resolve_options
from ldpstream.agents.cli.terminal.errors import Refused
from ldpstream.agents.cli.terminal.query_options import query_parameters
from ldpstream.agents.config import ConfigError, read_config
from ldpstream.agents.config.query.capabilities import read_options, request_options
from ldpstream.agents.config.query.options import (
    KEYS,
    RESOLVERS,
    EstimateOptions,
    EstimateRequest,
)
from ldpstream.agents.config.query.settings import SETTINGS, WORDS
from ldpstream.agents.config.tables import CollectionTable, PublishTable
from ldpstream.agents.document.answers import Collection
from ldpstream.agents.web import build_http
from ldpstream.agents.web.operations import describe_api
from tests.stream.asking import ask, post
from tests.stream.serving import AGES, START_MS, serve_collections

RECORDS = {
    **AGES,
    "domain": {"attributes": {"age": {"size": 5}, "home": {"size": 3}}},
    "publish": {},
}
PATH = "/api/collections/ages/estimate"
EXAMPLES: dict[str, tuple[str, Any]] = {
    "attribute": ("age", "age"),
    "top": ("7", 7),
    "range": ("0..30", ["0..30"]),
    "quantile": ("0.25", [0.25]),
    "linear": ("old:0,0,0,0,0,1,1,1,1,1", [{"name": "old", "weights": [0] * 5 + [1] * 5}]),
    "areas": ("true", True),
    "estimand": ("population", "population"),
    "method": ("bernstein", "bernstein"),
    "simultaneous": ("true", True),
    "confidence": ("0.9", 0.9),
    "project": ("simplex", "simplex"),
}
"""For each setting a text other than the collection's default, and the same value in a body."""


def test_every_setting_has_an_example_an_option_and_a_help() -> None:
    assert list(EXAMPLES) == list(WORDS)
    assert {one.name for one in SETTINGS} <= {field.name for field in fields(EstimateOptions)}
    assert RESOLVERS.keys() == {one.name for one in SETTINGS}
    assert KEYS.keys() <= {field.name for field in fields(EstimateOptions)}
    assert all(len(one.help) > 20 for one in SETTINGS)
    for one in SETTINGS:
        assert one.repeated == isinstance(EXAMPLES[one.word][1], list)


def test_addresses_and_bodies_are_described_as_declared() -> None:
    operations = describe_api()["paths"]["/api/collections/{name}/estimate"]
    parameters = {one["name"]: one for one in operations["get"]["parameters"]}
    others = {"name", "start", "end", "format", "fingerprint"}
    assert [name for name in parameters if name not in others] == list(WORDS)
    for word, setting in WORDS.items():
        described = parameters[word]["schema"]
        assert (described.get("items", described)) == setting.schema
        assert ("items" in described) == setting.repeated
        assert setting.help in parameters[word]["description"]
    body = describe_api()["components"]["schemas"]["EstimateRequest"]["properties"]
    assert list(body) == ["start", "end", *(one.name for one in SETTINGS)]
    assert all(body[one.name]["description"] == one.help for one in SETTINGS)


@pytest.mark.parametrize("command", [query, estimate])
def test_commands_offer_what_is_declared(command: click.Command) -> None:
    options = {one.opts[0]: one for one in command.params if isinstance(one, click.Option)}
    for word, setting in WORDS.items():
        option = options[f"--{word}"]
        assert option.multiple == setting.repeated
        assert setting.help in (option.help or "")
        names = setting.schema.get("enum")
        assert names is None or list(getattr(option.type, "choices", ())) == names


def test_the_client_asks_with_the_same_model() -> None:
    assert python_client.EstimateRequest is EstimateRequest
    assert {one.name for one in SETTINGS} == EstimateRequest.model_fields.keys() - {"start", "end"}


def test_every_way_of_asking_gives_the_same_options() -> None:
    served = serve_collections({"ages": AGES, "records": RECORDS}).collections
    for word, (text, value) in EXAMPLES.items():
        setting = WORDS[word]
        config = served["records" if word == "attribute" else "ages"].config
        found = read_options(config.options, config.spec, {word: [text]})
        assert getattr(found, setting.name) != getattr(config.options, setting.name), word
        asked = EstimateRequest.model_validate({setting.name: value})
        assert request_options(config.options, config.spec, asked) == found
        written: Any = True if setting.schema["type"] == "boolean" else text
        written = (text,) if setting.repeated else written
        command = {**dict.fromkeys(WORDS), word: written}
        assert resolve_options(query_parameters(command), config) == found


async def test_every_setting_is_in_the_tag() -> None:
    pipeline = serve_collections({"ages": AGES, "records": RECORDS})
    pipeline.collections["ages"].report(0, [12.0, 55.0] * 200, times_ms=[START_MS] * 400)
    records = [{"age": 1, "home": 2}] * 400
    pipeline.collections["records"].report(0, records, times_ms=[START_MS] * 400)
    async with TestClient(TestServer(build_http(pipeline))) as client:
        of_records = PATH.replace("ages", "records")
        tags = [(await client.get(path)).headers["ETag"] for path in (PATH, of_records)]
        for word, (text, value) in EXAMPLES.items():
            path = of_records if word == "attribute" else PATH
            answer = await client.get(path, params={word: text})
            assert answer.status == 200, await answer.text()
            tags.append(answer.headers["ETag"])
            assert await post(client, {WORDS[word].name: value}, path=path) == await answer.json()
        assert len(set(tags)) == len(tags)
        told = (await ask(client, "/api/collections"))["collections"][0]
    assert RESOLVERS.keys() == {one.name for one in SETTINGS}
    assert KEYS.keys() <= told.keys()
    assert Collection.model_fields.keys() >= KEYS.keys()


def test_tables_take_what_is_configured() -> None:
    options, tables = EstimateOptions(), CollectionTable.model_fields | PublishTable.model_fields
    # How shares are projected follows from the mechanism.
    assert tables["project"].get_default() is None
    for name in KEYS.keys() - {"project"}:
        default, own = tables[name].get_default(call_default_factory=True), getattr(options, name)
        assert default == own or not (default or own)


async def test_a_refusal_names_the_setting_as_it_was_written() -> None:
    """The refused range has an edge that is not an edge of bins."""
    pipeline = serve_collections({"ages": AGES})
    pipeline.collections["ages"].report(0, [12.0] * 400, times_ms=[START_MS] * 400)
    config = pipeline.collections["ages"].config
    told = "expected edges of bins, got 31; the nearest edge is 30"
    async with TestClient(TestServer(build_http(pipeline))) as client:
        assert (await ask(client, f"{PATH}?range=31..60", 400))["error"] == f"range: {told}"
        posted = await post(client, {"ranges": ["31..60"]}, 400, path=PATH)
        assert posted["error"] == f"ranges: {told}"
    with pytest.raises(Refused) as refused:
        resolve_options({"range": ["31..60"]}, config)
    assert refused.value.message == f"--range: {told}"
    table = {**AGES, "publish": {"ranges": {"a b": [31, 60]}}}
    with pytest.raises(ConfigError) as caught:
        read_config({"collection": {"ages": table}}, base=Path(), environment={})
    assert str(caught.value) == f'collection.ages.publish.ranges."a b": {told}'
