"""Three collections and a client of the application, for the tests that ask it over HTTP."""

from collections.abc import AsyncIterator

import pytest
from aiohttp.test_utils import TestClient, TestServer

from ldpstream.agents.http import build_http
from tests.stream.asking import Client, three_collections
from tests.stream.serving import Pipeline


@pytest.fixture
def pipeline() -> Pipeline:
    """Three collections."""
    return three_collections()


@pytest.fixture
async def client(pipeline: Pipeline) -> AsyncIterator[Client]:
    """A client of the application alone."""
    async with TestClient(TestServer(build_http(pipeline))) as made:
        yield made
