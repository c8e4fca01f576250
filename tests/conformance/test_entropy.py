"""Where nobody passes a source of randomness, every mechanism draws from the operating system's."""

import os
from pathlib import Path

import numpy as np
import pytest

from ldpstream.mechanisms import CollectionSpec
from ldpstream.mechanisms.interface.mechanism import Mechanism
from tests.conformance.instances import INSTANCES
from tests.seeded import SeededEntropy


@pytest.fixture(autouse=True)
def urandom(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's generator gives the words of a seed, in the order in which it is asked."""
    seeded = SeededEntropy(17)
    monkeypatch.setattr(os, "urandom", lambda size: seeded.words(size // 8).tobytes())


@pytest.mark.parametrize("mechanism", INSTANCES.values(), ids=INSTANCES.keys())
def test_all_draws_are_the_systems(mechanism: Mechanism):
    values = np.arange(20) % mechanism.size
    found = mechanism.privatize(values)
    assert np.array_equal(found, mechanism.privatize(values, entropy=SeededEntropy(17)))


def test_so_are_those_of_numbers_that_are_rounded(tmp_path: Path):
    domain = {"interval": [0.0, 1.0], "bins": 4, "rounding": "random"}
    table = {"mechanism": "l1-geometric", "epsilon": 1.0, "domain": domain}
    spec = CollectionSpec.from_mapping("numbers", table, base=tmp_path)
    numbers = np.linspace(0.0, 1.0, 40)
    found = spec.privatize(numbers)
    assert np.array_equal(found, spec.privatize(numbers, entropy=SeededEntropy(17)))
