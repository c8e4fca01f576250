"""Entropy whose words a test chooses, to enumerate the draws of a mechanism."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.exact.entropy import WORD


class Scripted:
    """Hands out these words in order, modulo 2^64, however many are asked for at once."""

    def __init__(self, *batches: Sequence[int]) -> None:
        self.left = [word % WORD for batch in batches for word in batch]

    def words(self, n: int) -> NDArray[np.uint64]:
        taken, self.left = self.left[:n], self.left[n:]
        assert len(taken) == n
        return np.array(taken, dtype=np.uint64)


def words_in(digits: str) -> list[int]:
    """Return the words of hexadecimal digits, 16 each."""
    return [int(digits[i : i + 16], 16) for i in range(0, len(digits), 16)]
