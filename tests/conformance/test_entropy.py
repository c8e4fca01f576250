"""Without a source of randomness of the caller's, every mechanism draws from the system's."""

import os
from pathlib import Path

import numpy as np
import pytest

from ldpstream.mechanisms import CollectionSpec, SystemEntropy
from ldpstream.mechanisms.interface.mechanism import Mechanism
from tests.conformance.instances import INSTANCES
from tests.seeded import SYSTEM_WORDS, SeededEntropy


@pytest.fixture(autouse=True)
def urandom(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the system's generator return the words of a seed, in order."""
    seeded = SeededEntropy(17)
    monkeypatch.setattr(os, "urandom", lambda size: seeded.words(size // 8).tobytes())
    monkeypatch.setattr(SystemEntropy, "words", SYSTEM_WORDS)


@pytest.mark.parametrize("mechanism", INSTANCES.values(), ids=INSTANCES.keys())
def test_every_draw_is_from_the_system(mechanism: Mechanism):
    values = np.arange(20) % mechanism.size
    found = mechanism.privatize(values)
    assert np.array_equal(found, mechanism.privatize(values, entropy=SeededEntropy(17)))


def test_the_systems_source_keeps_nothing_between_calls():
    entropy = SystemEntropy()
    entropy.words(4)
    assert not vars(entropy)


def test_random_rounding_draws_from_the_system_too(tmp_path: Path):
    domain = {"interval": [0.0, 1.0], "bins": 4, "rounding": "random"}
    table = {"mechanism": "l1-geometric", "epsilon": 1.0, "domain": domain}
    spec = CollectionSpec.from_mapping("numbers", table, base=tmp_path)
    numbers = np.linspace(0.0, 1.0, 40)
    found = spec.privatize(numbers)
    assert np.array_equal(found, spec.privatize(numbers, entropy=SeededEntropy(17)))
