"""Randomness: 64-bit words, and exact draws from them.

Every draw of a mechanism is a function of uniform 64-bit words, so that its probabilities are
exactly the dyadic rationals that the certificate states (docs/theory.md section 9).
"""

import os
from collections.abc import Sequence
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

WORD = 1 << 64
"""Number of 64-bit words: the denominator of every dyadic probability."""

Words = NDArray[np.uint64]


class Entropy(Protocol):
    """A source of independent, uniform 64-bit words."""

    def words(self, n: int) -> Words:
        """Return `n` fresh words, uint64 of shape `(n,)`."""
        ...


class SystemEntropy:
    """The operating system's generator, read at every call.

    It keeps no buffer and no state, so that two processes never share a word after a fork.
    """

    def words(self, n: int) -> Words:
        """Return `n` fresh words, uint64 of shape `(n,)`."""
        return np.frombuffer(os.urandom(8 * n), dtype=np.uint64)


def bernoulli_each(entropy: Entropy, thresholds: Words) -> NDArray[np.bool_]:
    """Return draws, the i-th True with probability exactly `thresholds[i] / 2^64`: bool `(n,)`."""
    drawn: NDArray[np.bool_] = entropy.words(len(thresholds)) < thresholds
    return drawn


def bernoulli_rational(entropy: Entropy, probability: Fraction, n: int) -> NDArray[np.bool_]:
    """Return `n` draws, each True with exactly this probability in 0..1: bool `(n,)`."""
    drawn: NDArray[np.bool_] = choose_rational(entropy, (probability,), n) == 0
    return drawn


def bernoulli_rationals(
    entropy: Entropy, probabilities: Sequence[Fraction], which: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return draws, the i-th True with probability exactly `probabilities[which[i]]`: bool `(n,)`.

    Takes a word for each, in order, so that neither the number of words nor that of calls depends
    on `which`; then further ones for those that are undecided.
    """
    drawn = np.zeros(len(which), dtype=np.bool_)
    words = entropy.words(len(which))
    for number, probability in enumerate(probabilities):
        here = np.flatnonzero(which == number)
        drawn[here] = choose_by_words(entropy, (probability,), words[here]) == 0
    return drawn


def choose_rational(entropy: Entropy, ends: Sequence[Fraction], n: int) -> NDArray[np.int64]:
    """Return in which part of 0..1 each of `n` uniform numbers falls, exactly: int64 `(n,)`.

    `ends` ascend; part i lies between the end before it and the i-th end. Takes a word for each
    number, none where there is only one part.
    """
    if any(0 < end < 1 for end in ends):
        return choose_by_words(entropy, ends, entropy.words(n))
    return np.full(n, sum(end <= 0 for end in ends), dtype=np.int64)


def choose_by_words(entropy: Entropy, ends: Sequence[Fraction], words: Words) -> NDArray[np.int64]:
    """Return in which part of 0..1 uniform numbers fall whose first 64 digits are `words`: `(n,)`.

    The words are compared with the first 64 binary digits of the ends. Then, end by end and in
    order, each number that was equal takes another word for the next 64 digits.
    """
    out = np.full(len(words), sum(end <= 0 for end in ends), dtype=np.int64)
    split = [divmod(end * WORD, 1) for end in ends if 0 < end < 1]
    digits = np.array([first for first, _ in split], dtype=np.uint64)
    out += np.searchsorted(digits, words, side="left")
    for word in np.unique(digits[np.isin(digits, words)]):
        here = np.flatnonzero(words == word)
        rests = [rest for first, rest in split if first == word]
        out[here] += choose_rational(entropy, rests, here.size)
    return out


def fair_coins(entropy: Entropy, n: int) -> NDArray[np.bool_]:
    """Return `n` draws, True with probability 1/2; bool of shape `(n,)`.

    Each 64 draws take one word: its bits from the lowest on, where 1 is True.
    """
    words = entropy.words(-(-n // 64)).astype("<u8", copy=False)
    return np.unpackbits(words.view(np.uint8), count=n, bitorder="little").view(np.bool_)


def uniform_below(entropy: Entropy, bound: int, n: int) -> NDArray[np.int64]:
    """Return `n` exactly uniform draws from `0..bound-1`, int64 of shape `(n,)`.

    Masks each word to the next power of two and rejects what lies above: fewer than two rounds are
    expected, and a power of two never rejects.

    Raises:
        ValueError: if `bound` is not in `1..2^63`.
    """
    if not 1 <= bound <= 1 << 63:
        raise ValueError(f"bound must be in 1..2^63, got {bound}")
    mask = np.uint64((1 << (bound - 1).bit_length()) - 1)
    drawn = entropy.words(n) & mask
    rejected = np.flatnonzero(drawn >= np.uint64(bound))
    while rejected.size:
        again = entropy.words(rejected.size) & mask
        accepted = again < np.uint64(bound)
        drawn[rejected[accepted]] = again[accepted]
        rejected = rejected[~accepted]
    return drawn.astype(np.int64)


def uniform_below_each(entropy: Entropy, bounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return exactly uniform draws, the i-th from `0..bounds[i]-1`, int64 of shape `(n,)`.

    `bounds` are above 0. Works like `uniform_below` with a mask for each draw: one word each, then,
    in order, a further word for each draw that was rejected, until all are accepted.
    """
    limits = bounds.astype(np.uint64)
    masks = limits - np.uint64(1)
    for shift in (1, 2, 4, 8, 16, 32):
        masks |= masks >> np.uint64(shift)
    drawn = entropy.words(len(limits)) & masks
    rejected = np.flatnonzero(drawn >= limits)
    while rejected.size:
        again = entropy.words(rejected.size) & masks[rejected]
        accepted = again < limits[rejected]
        drawn[rejected[accepted]] = again[accepted]
        rejected = rejected[~accepted]
    return drawn.astype(np.int64)
