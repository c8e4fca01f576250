"""Every broker test runs on the embedded broker and on Apache Kafka, each started once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.brokers import KINDS, Broker, broker, skip_without_kafka
from tests.lab import Lab


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
