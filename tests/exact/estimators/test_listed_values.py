"""Some values estimated alone are estimated as among all of them, bit for bit."""

from collections.abc import Iterator
from itertools import product
from typing import Any, get_args

import numpy as np
import pytest

from ldpstream.estimators import projection
from ldpstream.estimators.bounds.options import Estimand, Method
from ldpstream.estimators.bounds.types import Distinct, Estimate
from ldpstream.estimators.estimate import estimate_values
from ldpstream.estimators.projection import project_blocks
from ldpstream.estimators.weights import estimate_public_weights
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.exact import walsh
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from ldpstream.mechanisms.families.design.geometry_transform import Geometry
from ldpstream.mechanisms.families.design.projective_geometry import ProjectiveGeometry
from ldpstream.mechanisms.families.groups.base import GroupMechanism
from ldpstream.mechanisms.families.groups.designs import GroupDesign
from ldpstream.mechanisms.families.groups.high_low import HighLow
from ldpstream.mechanisms.families.groups.mechanism import sensitive_groups
from ldpstream.mechanisms.families.weights.public import PublicWeights
from ldpstream.mechanisms.interface.mechanism import Mechanism, Statistic
from tests.conformance.instances import DECODED, FEW, INSTANCES
from tests.exact.enumeration import counted

ALL = pytest.mark.parametrize("name", DECODED)
FIELDS = ("value", "se", "low", "high", "influence")


def some_statistic(mechanism: Mechanism, n: int) -> Statistic:
    values = np.random.default_rng(n).binomial(mechanism.size - 1, 0.3, n)
    return counted(mechanism, values, n)


def lists(size: int) -> Iterator[np.ndarray]:
    """Yield one value, two of them, and all in another order."""
    yield np.array([size - 1])
    yield np.array([size - 1, 0])
    yield np.random.default_rng(size).permutation(size)


def bits(estimate: Estimate) -> list[bytes]:
    return [getattr(estimate, field).tobytes() for field in FIELDS]


@pytest.mark.grid
@pytest.mark.parametrize("name", FEW)
def test_some_values_are_estimated_as_all_of_them(name: str):
    mechanism = INSTANCES[name]
    for n in (0, 1, 300):
        statistic = some_statistic(mechanism, n)
        # Where many reports are tried with every estimand, one is enough for few.
        estimands = get_args(Estimand) if n > 1 else ("respondents",)
        for method, estimand in product(get_args(Method), estimands):
            options: Any = {"method": method, "estimand": estimand, "simultaneous": n > 1}
            everything = estimate_values(mechanism, statistic, n, **options)
            for values in lists(mechanism.size):
                some = estimate_values(mechanism, statistic, n, values=values, **options)
                assert bits(some) == bits(everything.take(values)), (n, method, estimand)


@pytest.mark.parametrize("method", ["padded", "bernstein"])
def test_values_of_one_share_are_bounded_once(method: Method):
    blocks, few = Blocks.one(3_000), frozenset(range(7, 27))
    for mechanism in (
        BlockHadamard(1.0, blocks),
        ProjectiveGeometry(1.0, blocks),
        sensitive_groups(1.0, 3_000, few, GroupDesign(20, 1, Geometry(2, 5))),
        sensitive_groups(1.0, 3_000, few, GroupDesign(20, 3)),
        HighLow(1.0, 3_000, few),
    ):
        for n, family in ((0, None), (60, None), (60, 9_000)):
            statistic = some_statistic(mechanism, n)
            distinct = Distinct.of(mechanism.decoder, mechanism.decoder.totals(statistic))
            assert distinct is not None
            assert distinct.values.size <= 61 + (20 if isinstance(mechanism, GroupMechanism) else 0)
            options: Any = {"method": method, "simultaneous": n > 0, "family": family}
            everything = estimate_values(mechanism, statistic, n, **options)
            each = estimate_values(mechanism, statistic, n, values=np.arange(3_000), **options)
            assert bits(everything) == bits(each)
            assert everything.form.tolist() == each.form.tolist()


@ALL
def test_a_decoder_with_a_step_bounds_all_values_alike(name: str):
    reading = INSTANCES[name].decoder
    if reading.step is not None:
        alike = slice(None) if reading.in_steps is None else reading.in_steps
        low, high = (end[alike] for end in reading.extremes())
        columns = (low, high, *(noise[alike] for noise in reading.noise_extremes()))
        assert all((column == column[0]).all() for column in columns)
        assert reading.step == pytest.approx(high[0] - low[0], rel=1e-12)
        steps = reading.totals(some_statistic(INSTANCES[name], 40))[alike] / reading.step
        np.testing.assert_allclose(steps - steps[0], np.rint(steps - steps[0]), atol=1e-9)


@pytest.mark.parametrize("name", [n for n, m in INSTANCES.items() if isinstance(m, PublicWeights)])
@pytest.mark.parametrize("estimand", get_args(Estimand))
def test_public_weights_of_some_values_are_estimated_as_all_of_them(name: str, estimand: Any):
    mechanism = INSTANCES[name]
    assert isinstance(mechanism, PublicWeights)
    statistic = some_statistic(mechanism, 300)
    options: Any = {"method": "anytime", "estimand": estimand, "simultaneous": True}
    everything = estimate_public_weights(mechanism, statistic, 300, **options)
    options["family"] = mechanism.values.size
    for values in lists(mechanism.values.size):
        some = estimate_public_weights(mechanism, statistic, 300, values=values, **options)
        assert bits(some) == bits(everything.take(values))


@pytest.mark.parametrize("kind", [np.int64, np.float64])
@pytest.mark.parametrize("shape", [(1, 64), (5, 16), (7, 1), (3, 8)])
def test_a_transform_by_stretches_is_that_of_the_whole(shape: Any, kind: Any, monkeypatch: Any):
    vectors = np.random.default_rng(1).normal(size=shape, scale=100.0).astype(kind)
    whole = walsh.walsh_hadamard(vectors)
    monkeypatch.setattr(walsh, "_STRETCH", 4)
    assert walsh.walsh_hadamard(vectors).tobytes() == whole.tobytes()


@pytest.mark.parametrize("length", [1, 2, 32, 128, 1_024, 1 << 15])
@pytest.mark.parametrize("most", [1_000, 2**53 // 128, 2**62 // (1 << 15)])
def test_a_transform_of_whole_numbers_is_exact(length: int, most: int):
    """Products in float64 would not be where sums reach 2^53."""
    vectors = np.random.default_rng(2).integers(-most, most, (2, length), endpoint=True)
    vectors[0] = most
    rows = np.unique(np.array([0, 1, 5, length // 2, length - 1]) % length)
    signs = np.where(walsh.positive(rows[:, None], np.arange(length)), 1, -1)
    expected = [[int((sign.astype(object) * row).sum()) for sign in signs] for row in vectors]
    assert walsh.walsh_hadamard(vectors)[:, rows].tolist() == expected


def plainly_projected(values: Any, groups: Any, totals: Any) -> Any:
    """Project all groups at once, as the method is written in the literature."""
    order = np.lexsort((-values, groups))
    sizes = np.bincount(groups, minlength=totals.size)
    starts, group = np.cumsum(sizes) - sizes, groups[order]
    rank = np.arange(values.size) - starts[group] + 1
    running = np.cumsum(values[order])
    before = np.concatenate([[0.0], running])[starts[group]]
    threshold = (running - before - totals[group]) / rank
    kept = np.bincount(group, values[order] > threshold, totals.size).astype(np.int64)
    out = np.empty_like(values)
    last = starts[group] + np.maximum(kept[group], 1) - 1
    out[order] = np.maximum(values[order] - threshold[last], 0.0)
    return out


@pytest.mark.parametrize("part", [1, 4, 1 << 17])
def test_a_projection_by_parts_is_that_of_the_whole(part: int, monkeypatch: Any):
    monkeypatch.setattr(projection, "_PART", part)
    rng = np.random.default_rng(part)
    for count in (1, 2, 7):
        for _ in range(20):
            groups = rng.integers(0, count, 40)
            groups[:count] = np.arange(count)
            values = rng.normal(size=40).round(1)
            totals = rng.random(count)
            for order in (np.arange(40), np.argsort(groups, kind="stable")):
                found = project_blocks(values[order], groups[order], totals)
                plain = plainly_projected(values[order], groups[order], totals)
                assert found.tobytes() == plain.tobytes()
