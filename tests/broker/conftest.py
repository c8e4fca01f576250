"""Brokers that tests share: the embedded one, started once in each process of tests, and one Kafka.

A test runs on both only where it expects something else of each, or is of what both have to do.
What users run on, and what is about a broker's own part, is `on_kafka`; tests of our own code alone
are `on_one_broker`.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest

from tests.broker.pages.listeners import Secured, secured_kafka
from tests.broker.shared import shared_kafka
from tests.brokers import KINDS, Broker, broker, skip_without_kafka
from tests.certificates import skip_without_openssl
from tests.lab import Lab

on_one_broker = pytest.mark.parametrize("running", ["embedded"], indirect=True)
"""For tests of our own code alone: the embedded broker starts at once and needs no Java."""
on_kafka = pytest.mark.parametrize("running", ["kafka"], indirect=True)
"""For tests of what Apache Kafka alone does, or of what users run on it."""


@pytest.fixture(scope="session")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Broker]]:
    """Start a broker of a kind at the first call; all run until the session ends."""
    own = tmp_path_factory.getbasetemp()
    # Each process of tests has a folder in that of the run.
    run = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    with ExitStack() as stack:
        yield cache(
            lambda kind: stack.enter_context(shared_kafka(run) if kind == "kafka" else broker(kind))
        )


@pytest.fixture(params=KINDS)
def running(request: pytest.FixtureRequest, start: Callable[[str], Broker]) -> Broker:
    """A broker of the session; tests share it and use names of their own."""
    if request.param == "kafka":
        skip_without_kafka()
    return start(request.param)


@pytest.fixture
def lab(running: Broker, tmp_path: Path) -> Lab:
    """One collection, `trips`, with four partitions."""
    return Lab(running, tmp_path)


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """Apache Kafka with a listener of every kind."""
    skip_without_kafka()
    skip_without_openssl()
    with secured_kafka(tmp_path_factory.mktemp("certificates")) as started:
        yield started
