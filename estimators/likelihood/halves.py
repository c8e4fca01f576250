"""Counts split in two by a fair coin for each report."""

from dataclasses import replace
from hashlib import sha256

import numpy as np

from ldpstream.estimators.likelihood.line import Line


def halves(line: Line) -> tuple[Line, Line]:
    """Return the likelihoods of the reports whose coin fell on one side, and on the other.

    Coins are seeded by a hash of the counts, so that the same counts give the same halves.
    """
    counts = line.counts.astype("<i8")
    coins = np.random.default_rng(int.from_bytes(sha256(counts.tobytes()).digest()))
    one = coins.binomial(counts, 0.5).astype(np.float64)
    return replace(line, counts=one), replace(line, counts=line.counts - one)
