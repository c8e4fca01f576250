"""Three collections served over HTTP, clients of them."""

from collections.abc import AsyncIterator, Iterator
from inspect import signature

import pytest
from aiohttp.test_utils import TestClient, TestServer

from ldpstream.agents import client as api
from ldpstream.agents.web import build_http, certificates
from tests.processes import PATIENCE_SECONDS
from tests.stream.asking import Client, three_collections
from tests.stream.serving import Pipeline


@pytest.fixture(scope="session", autouse=True)
def patient_proofs() -> Iterator[None]:
    """Let a proof take as long as a busy machine needs: its process has to start, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certificates, "LIMIT_SECONDS", PATIENCE_SECONDS)
        yield


def is_changed(request: pytest.FixtureRequest) -> bool:
    """Return whether a test asks for the pipeline itself: others only read what it serves."""
    return "pipeline" in signature(request.function).parameters


@pytest.fixture(scope="session")
def shared_pipeline() -> Pipeline:
    return three_collections()


@pytest.fixture
def pipeline(request: pytest.FixtureRequest, shared_pipeline: Pipeline) -> Pipeline:
    return three_collections() if is_changed(request) else shared_pipeline


@pytest.fixture
async def client(pipeline: Pipeline) -> AsyncIterator[Client]:
    """A client of the application alone."""
    async with TestClient(TestServer(build_http(pipeline))) as made:
        yield made


@pytest.fixture
async def url(pipeline: Pipeline) -> AsyncIterator[str]:
    """The URL at which the application is served."""
    async with TestServer(build_http(pipeline)) as server:
        yield str(server.make_url("/"))


@pytest.fixture
async def worker(url: str) -> AsyncIterator[api.Client]:
    """A typed client of the served application."""
    async with api.connect(url) as made:
        yield made
