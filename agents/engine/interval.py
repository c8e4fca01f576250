"""Scale the interval of periodic work with the number of partitions, to bound its cost per second.

A consumer asks the broker about all of its partitions at every fetch, a tick visits all owned ones,
and every flush writes a commit record for each. For a hundred partitions this is negligible. For
thousands, at the same interval, it would take all of a process's time.
"""

from typing import Final

PARTITIONS: Final = 100
"""Up to this many partitions run at the base interval."""


def scaled_interval(seconds: float, partitions: int, *, most: float = float("inf")) -> float:
    """Return the seconds between two rounds over this many partitions.

    That is `seconds` for up to `PARTITIONS`, proportionally more above, and at most `most`.
    """
    return max(seconds, min(most, seconds * partitions / PARTITIONS))
