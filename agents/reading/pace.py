"""How often to do what costs a little for every partition, so that thousands cost no more a second.

A consumer asks the broker about all of its partitions at every fetch, a tick looks at all that are
held, a flush writes a head for each: with a hundred that is nothing, with thousands it is all that
a process has time for, where it is done as often.
"""

from typing import Final

PARTITIONS: Final = 100
"""So many are done as often as one."""


def paced(seconds: float, partitions: int, *, most: float = float("inf")) -> float:
    """Return how many seconds lie between two rounds over so many partitions.

    That is `seconds` for up to `PARTITIONS`, beyond that in proportion, and at most `most`.
    """
    return max(seconds, min(most, seconds * partitions / PARTITIONS))
