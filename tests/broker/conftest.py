"""Every broker test runs on the embedded broker and on Apache Kafka, each started once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.brokers import KINDS, Broker, broker, skip_without_kafka
from tests.certificates import skip_without_openssl
from tests.lab import Lab
from tests.listeners import Secured, secured_kafka


@pytest.fixture(scope="session", params=KINDS)
def running(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A broker for the session; tests share it and use names of their own."""
    if request.param == "kafka":
        skip_without_kafka()
    with broker(request.param) as started:
        yield started


@pytest.fixture
def lab(running: Broker, tmp_path: Path) -> Lab:
    """One collection, `trips`, with four partitions."""
    return Lab(running, tmp_path)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """Apache Kafka with a listener of every kind."""
    skip_without_kafka()
    skip_without_openssl()
    with secured_kafka(tmp_path_factory.mktemp("certificates")) as started:
        yield started
