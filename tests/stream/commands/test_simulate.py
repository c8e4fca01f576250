"""Simulated devices: a crowd that wanders over the domain, repeatable by its seed."""

from pathlib import Path

import numpy as np
import pytest

from ldpstream.agents.cli.demonstration.devices import PERIOD_SECONDS, Crowd
from tests.stream.cli import PLACES, configured, invoke, refused


@pytest.mark.parametrize("shape", [(2,), (1_000,), (25, 40), (3, 1, 5)])
def test_values_are_in_the_domain_and_follow_from_the_seed(shape: tuple[int, ...]):
    values = Crowd(shape, seed=5).draw(2_000, seconds=10.0)
    assert values.dtype == np.int64
    assert values.shape == (2_000,)
    assert 0 <= values.min() <= values.max() < np.prod(shape)
    np.testing.assert_array_equal(values, Crowd(shape, seed=5).draw(2_000, seconds=10.0))
    assert len(Crowd(shape, seed=5).draw(0, seconds=10.0)) == 0


def test_the_crowd_wanders():
    crowd = Crowd((1_000,), seed=5)
    early, late = (np.median(crowd.draw(5_000, seconds=s)) for s in (0.0, PERIOD_SECONDS / 4))
    # The centre moves from 500 to 800; a median of 5,000 varies by a few.
    assert 200 < late - early < 320


def test_an_unknown_collection_is_refused(tmp_path: Path):
    message = refused(invoke("simulate", "-c", configured(tmp_path, PLACES), "two"))
    assert "expected one of the collections places, modes, ages, got two" in message
