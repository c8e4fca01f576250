"""Uniform numbers that follow from a device's secret."""

import hmac
from collections.abc import Iterator
from itertools import count


def keyed_words(secret: bytes, message: bytes) -> Iterator[int]:
    """Yield 64-bit words: of HMAC-SHA-256 under a secret, of a message and the word's number."""
    for number in count():
        digest = hmac.digest(secret, message + number.to_bytes(8, "little"), "sha256")
        yield int.from_bytes(digest[:8], "little")


def below(words: Iterator[int], bound: int) -> int:
    """Return a uniform number in `0..bound-1`, by rejection on the lowest bits of words."""
    mask = (1 << (bound - 1).bit_length()) - 1
    return next(number for word in words if (number := word & mask) < bound)
