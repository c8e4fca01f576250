"""Errors on Gowalla's grid, where the data are: LDPSTREAM_GOWALLA is the path of the .npz file.

Of 40 repetitions the distances had the means and standard deviations below; a check leaves 6
standard deviations with probability 2e-9 if they are normal (they are sums over 4,464 cells).
"""

import os
from pathlib import Path

import pytest
from benchmarks.papers.gowalla_offline import errors, load

PATH = os.environ.get("LDPSTREAM_GOWALLA", "")
EXPECTED = {
    (1, 1): ((0.5164, 0.0100), (0.5164, 0.0100)),
    (5, 7): ((0.2549, 0.0043), (0.2426, 0.0041)),
    (25, 35): ((0.0957, 0.0017), (0.0865, 0.0015)),
    (25, 70): ((0.0720, 0.0011), (0.0652, 0.0013)),
}


@pytest.mark.skipif(not PATH, reason="LDPSTREAM_GOWALLA names no file: Gowalla's grid of counts")
@pytest.mark.parametrize("blocks", EXPECTED)
def test_the_total_variation_after_projection_is_the_one_measured(blocks: tuple[int, int]):
    found = errors(load(Path(PATH)), blocks, seed=1)
    for distance, (mean, deviation) in zip(found, EXPECTED[blocks], strict=True):
        assert abs(distance - mean) < 6 * deviation
