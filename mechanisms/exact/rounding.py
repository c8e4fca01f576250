"""Random rounding of real numbers to one of the two nearest grid points (docs/theory.md section 5).

The closer a number is to a grid point, the more likely it is rounded to it, so that its mean is
kept. The probability is exact for the double that is rounded: floating point decides if a 64-bit
word lies clearly on one side, rationals decide if it does not.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.exact.entropy import WORD, Entropy

# The position and the word each take a few roundings with a relative error of at most 2^-53.
_ROUNDINGS = 2.0**-49


def round_at_random(
    entropy: Entropy, points: NDArray[np.float64], low: float, high: float, steps: int
) -> NDArray[np.int64]:
    """Return the grid points that numbers are rounded to, int64 of shape `(n,)` in `0..steps`.

    `points` are finite numbers in `[low, high]`, float64 `(n,)`; grid point g lies at
    `low + g (high - low)/steps`, in exact rationals. Takes one word for each number, rarely more.
    """
    words = entropy.words(len(points))
    position = (points - low) / (high - low) * steps
    below = np.clip(np.floor(position), 0, steps - 1)
    share = position - below
    chance = words * 2.0**-64
    out: NDArray[np.int64] = below.astype(np.int64) + (chance < share)
    doubt = _ROUNDINGS * (steps + 1.0)
    near = (np.abs(chance - share) <= doubt) | (share <= doubt) | (share >= 1.0 - doubt)
    for place in np.flatnonzero(near).tolist():
        exact = grid_position(float(points[place]), low, high, steps)
        out[place] = _round_exactly(entropy, exact, int(words[place]))
    return out


def grid_position(point: float, low: float, high: float, steps: int) -> Fraction:
    """Return the exact position of a number on the grid, in `0..steps`."""
    return (Fraction(point) - Fraction(low)) * steps / (Fraction(high) - Fraction(low))


def _round_exactly(entropy: Entropy, position: Fraction, word: int) -> int:
    below = position.numerator // position.denominator
    rest = position - below
    # The words are the base-2^64 digits of a uniform number, which is compared with `rest`.
    while rest:
        rest *= WORD
        digit = rest.numerator // rest.denominator
        if word != digit:
            return below + (word < digit)
        rest -= digit
        word = int(entropy.words(1)[0])
    return below
