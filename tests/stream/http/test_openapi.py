"""The OpenAPI description is complete and valid, and every answer matches it."""

from collections.abc import Iterator
from typing import Any

from aiohttp.test_utils import TestClient, TestServer
from jsonschema import Draft202012Validator

from ldpstream.agents.web import build_http
from ldpstream.agents.web.operations import describe_api
from tests.stream.serving import CITY, RIDES, START_MS, serve_collections, visits

DESCRIPTION = describe_api()
PATHS = DESCRIPTION["paths"]
ASKED = [
    ("/api/collections", "/api/collections", 200),
    ("/api/collections/{name}", "/api/collections/city", 200),
    ("/api/collections/{name}", "/api/collections/none", 404),
    ("/api/collections/{name}", "/api/collections/city?x=1", 400),
    ("/api/collections/{name}/windows", "/api/collections/city/windows?last=1", 200),
    ("/api/collections/{name}/windows", "/api/collections/city/windows?last=0", 400),
    ("/api/collections/{name}/windows", "/api/collections/none/windows", 404),
    ("/api/collections/{name}/estimate", "/api/collections/city/estimate", 200),
    ("/api/collections/{name}/estimate", "/api/collections/rides/estimate", 200),
    ("/api/collections/{name}/estimate", "/api/collections/city/estimate?project=blocks", 200),
    ("/api/collections/{name}/estimate", "/api/collections/city/estimate?top=x", 400),
    ("/api/collections/{name}/estimate", "/api/collections/none/estimate", 404),
    ("/api/collections/{name}/geojson", "/api/collections/city/geojson", 404),
    ("/api/collections/{name}/series", "/api/collections/city/series?published=true", 200),
    ("/api/collections/{name}/series", "/api/collections/city/series?points=0", 400),
    ("/api/series", "/api/series", 200),
    ("/api/series", "/api/series?collection=none", 400),
    ("/api/collections/{name}/change", "/api/collections/city/change?blocks=true", 200),
    ("/api/collections/{name}/change", "/api/collections/city/change?top=x", 400),
    ("/api/collections/{name}/events", "/api/collections/none/events", 404),
    ("/api/collections/{name}/events", "/api/collections/city/events?after=x", 400),
    ("/api/collections/{name}/spec", "/api/collections/city/spec", 200),
    ("/api/collections/{name}/spec", "/api/collections/none/spec", 404),
    ("/api/collections/{name}/certificate", "/api/collections/city/certificate", 200),
    ("/api/collections/{name}/certificate", "/api/collections/none/certificate", 404),
    ("/api/collections/{name}/status", "/api/collections/city/status", 200),
    ("/api/collections/{name}/status", "/api/collections/none/status", 404),
    ("/healthz", "/healthz", 200),
    ("/readyz", "/readyz", 200),
    ("/metrics", "/metrics", 200),
]


def schema_of(path: str, status: int, content_type: str) -> dict[str, Any]:
    """Return the schema of an answer, with the components that it refers to."""
    response = PATHS[path]["get"]["responses"][str(status)]
    schema: dict[str, Any] = response["content"][content_type]["schema"]
    return {**schema, "components": DESCRIPTION["components"]}


def references(node: object) -> Iterator[str]:
    """Yield all references inside a JSON document."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref":
                yield value
            else:
                yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def test_the_schemas_are_valid_and_all_references_resolve() -> None:
    schemas = DESCRIPTION["components"]["schemas"]
    for schema in schemas.values():
        Draft202012Validator.check_schema(schema)
    known = {f"#/components/schemas/{name}" for name in schemas}
    used = set(references(DESCRIPTION))
    assert used <= known
    assert "#/components/schemas/EstimateDocument" in used


def test_operations_are_complete() -> None:
    operations = [one for path in PATHS.values() for one in path.values()]
    ids = [operation["operationId"] for operation in operations]
    assert len(set(ids)) == len(ids)
    for path, item in PATHS.items():
        assert set(item) <= {"get", "post"}
        for operation in item.values():
            in_path = [p["name"] for p in operation["parameters"] if p["in"] == "path"]
            assert in_path == [name for name in ("name", "start") if f"{{{name}}}" in path]
            for parameter in operation["parameters"]:
                Draft202012Validator.check_schema(parameter["schema"])


def test_every_documented_path_is_asked_here() -> None:
    assert {path for path, _, _ in ASKED} == set(PATHS)


async def test_every_documented_path_answers_as_its_schema_says() -> None:
    pipeline = serve_collections({"city": CITY, "rides": RIDES})
    pipeline.collections["city"].report(0, visits(1, 300), times_ms=[START_MS] * 300)
    pipeline.collections["rides"].report(0, ["tram"], times_ms=[START_MS])
    async with TestClient(TestServer(build_http(pipeline))) as client:
        for path, url, status in ASKED:
            answer = await client.get(url)
            assert answer.status == status, url
            schema = schema_of(path, status, answer.content_type)
            if answer.content_type == "application/json":
                Draft202012Validator(schema).validate(await answer.json())


async def test_unready_answers_are_as_described() -> None:
    pipeline = serve_collections({"city": CITY}, read=False)
    of_one = "/api/collections/{name}"
    async with TestClient(TestServer(build_http(pipeline))) as client:
        for path in ("/readyz", f"{of_one}/windows", f"{of_one}/estimate"):
            answer = await client.get(path.format(name="city"))
            assert answer.status == 503
            schema = schema_of(path, 503, answer.content_type)
            Draft202012Validator(schema).validate(await answer.json())


async def test_the_description_is_served() -> None:
    pipeline = serve_collections({"city": CITY})
    async with TestClient(TestServer(build_http(pipeline))) as client:
        answer = await client.get("/openapi.json")
        assert answer.content_type == "application/json"
        assert await answer.json() == DESCRIPTION


async def test_described_parameters_are_those_that_are_accepted() -> None:
    """Every path knows its parameters: a wrong value is refused as such."""
    pipeline = serve_collections({"city": CITY})
    pipeline.collections["city"].report(0, visits(1, 300), times_ms=[START_MS] * 300)
    asked: set[str] = set()
    async with TestClient(TestServer(build_http(pipeline))) as client:
        for path, item in PATHS.items():
            for parameter in item["get"]["parameters"]:
                # Any text may be the name of a metric.
                if parameter["in"] == "query" and path != "/metrics":
                    asked.add(parameter["name"])
                    url = path.format(name="city", start=START_MS)
                    answer = await client.get(url, params={parameter["name"]: "?"})
                    assert answer.status == 400
                    assert (await answer.json())["error"].startswith(
                        f"{parameter['name']}: expected"
                    )
    assert asked >= {"start", "end", "from", "to", "last", "top", "range", "quantile", "linear"}
