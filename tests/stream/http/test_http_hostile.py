"""Hostile calls to the HTTP API, generated from its own OpenAPI description."""

import pytest

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
