"""To any request the API answers with numbers, or says what is wrong with the request."""

import json
import random
from typing import Any, Final

import pytest
from aiohttp.test_utils import TestClient, TestServer
from yarl import URL

from ldpstream.agents.web import build_http
from tests.stream.serving import AGES, CITY, RIDES, START_MS, Pipeline, serve_collections, visits

REQUESTS: Final = 600

_OWN: Final = {"partitions": 1, "minimum": 0, "window": {"size": "1m", "hop": "30s"}}
TABLES: Final[dict[str, dict[str, Any]]] = {
    "city": CITY,
    "rides": RIDES,
    "ages": AGES,
    "votes": {
        **_OWN,
        "mechanism": "binary",
        "epsilon": [1.0, 2.0],
        "domain": {"values": ["no", "yes"]},
    },
    "codes": {
        **_OWN,
        "mechanism": "high-low",
        "epsilon": 1.0,
        "domain": {"size": 20},
        "sensitive": [1, 2, 3],
    },
    "starts": {
        **_OWN,
        "mechanism": "l1-geometric",
        "epsilon": 0.5,
        "domain": {"size": 12},
    },
    "boxes": {
        **_OWN,
        "mechanism": "block-hadamard",
        "epsilon": 1.0,
        "domain": {"sizes": [3, 4, 5]},
    },
}

# For each parameter first the texts that are valid for some collection, then others.
TEXTS: Final = {
    "start": ["1795255200000", "2026-11-21T10:00:00Z", "1795255170000", "0", "x", ""],
    "end": ["1795255260000", "2026-11-21T10:02:00Z", "1795255230000", "9e9", "-1"],
    "top": ["all", "0", "1", "7", "99999999999999999999", "-0", "٣", "1.0"],
    "range": [
        "0..1", "0..1,0..1", "0..0,0..0,0..0", "1..2,2..3,0..4", "0.0..10.0", "0..100",
        "..", "-1..1", "0..1e300", "inf..inf", "nan..nan", "%..%", ",",
    ],
    "quantile": ["0.5", "1e-9", "0.999999999999", "nan", "-1", "1"],
    "estimand": ["population", "respondents", "active", "x"],
    "method": [
        "normal", "bernstein", "anytime", "exact",
        "wilson",
    ],
    "simultaneous": ["true", "false", "1"],
    "confidence": ["0.5", "0.9999999999999999", "1e-300", "5e-324", "1", "inf"],
    "project": ["none", "ordered", "simplex", "blocks", "cone"],
}  # fmt: skip
OFTEN_RIGHT: Final = {"start": 2, "end": 2, "range": 6, "quantile": 3, "confidence": 4}
"""How many texts of a parameter are valid for some collection, where these are not two."""


@pytest.fixture
def pipeline() -> Pipeline:
    """Each kind of mechanism and domain, with so few reports that formulas might divide by 0."""
    made = serve_collections(TABLES)
    count_reports(made)
    return made


def count_reports(made: Pipeline) -> None:
    """Count very few reports in each collection."""
    for name, labels in {
        "city": visits(1, 50),
        "rides": ["bus"] * 120,
        "ages": [3.0] * 2,
        "votes": ["yes"],
        "codes": [5, 1] * 20,
        "starts": [0, 3, 11] * 3,
        "boxes": [[1, 2, 3]] * 40,
    }.items():
        made.collections[name].report(0, labels, times_ms=[START_MS] * len(labels))


def requests(seed: int) -> list[URL]:
    """Return requests with random parameters, a third of them with valid texts alone."""
    rng = random.Random(seed)
    found = []
    for _ in range(REQUESTS):
        right = rng.random() < 0.33
        asked = []
        for name, texts in TEXTS.items():
            if rng.random() < 0.3:
                count = OFTEN_RIGHT.get(name, 2) if right else len(texts)
                asked.append((name, rng.choice(texts[:count])))
        path = URL(f"/api/collections/{rng.choice(list(TABLES))}/estimate")
        found.append(path.with_query(asked))
    return found


def refuse(constant: str) -> float:
    raise AssertionError(f"{constant} is no JSON")


async def test_no_request_breaks_an_estimate(pipeline: Pipeline) -> None:
    statuses = []
    async with TestClient(TestServer(build_http(pipeline))) as client:
        for url in requests(1):
            answer = await client.get(url)
            body = json.loads(await answer.text(), parse_constant=refuse)
            assert answer.status in (200, 400, 404), (url, body)
            if answer.status == 200:
                assert "n" in body
            else:
                assert list(body) == ["error"]
            statuses.append(answer.status)
    assert statuses.count(200) > 100
    assert statuses.count(400) > 100


@pytest.mark.parametrize(
    "path",
    [
        "/api/collections/%00", "/api/collections/%FF/estimate", "/api/collections/%2e%2e/estimate",
        "/../etc/passwd", "/page/../page.py", "/page/%2e%2e/page.js", "/page/__init__.py",
        "/api/collections/city/estimate?%FF=1", "/api/collections/city/estimate?start=%FF&end=%00",
    ],
)  # fmt: skip
async def test_odd_paths_are_refused_in_json(pipeline: Pipeline, path: str) -> None:
    async with TestClient(TestServer(build_http(pipeline))) as client:
        answer = await client.get(URL(path, encoded=True))
        assert answer.status in (400, 404)
        assert list(await answer.json()) == ["error"]


CALLS = 60


@pytest.mark.slow
def test_hostile_calls_get_answers_as_described() -> None:
    pytest.importorskip("schemathesis", reason="needs the extra dev: pip install schemathesis")
    from tests.fuzz.http import fuzz  # imported late: it takes a second, and may be missing

    found = fuzz(CALLS)
    assert found.failures == {}
    assert found.stderr == ""
    assert max(found.statuses) < 500
    assert found.statuses[200] > CALLS // 10
    assert found.calls >= CALLS
