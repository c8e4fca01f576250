"""The progress and the time limit of a plan."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

_SAID_SECONDS: Final = 0.5
_Item = TypeVar("_Item")


class TimeUpError(Exception):
    """The time for comparing mechanisms is up."""


class Progress:
    """Reports progress to `say`, and raises once some seconds from now have passed.

    The time is checked between queries; a step that has begun, such as preparing a decoder, is
    completed.
    """

    def __init__(
        self,
        say: Callable[[str], object] = str,
        *,
        seconds: float = math.inf,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._say, self._clock = say, clock
        self._until = clock() + seconds
        self._what, self._said = "", -math.inf

    def check(self) -> None:
        """Check the time."""
        if self._clock() >= self._until:
            raise TimeUpError

    def begin(self, what: str) -> None:
        """Report the step that begins."""
        self.check()
        self._what, self._said = what, self._clock()
        self._say(what)

    def each(self, queries: Sequence[_Item]) -> Iterator[_Item]:
        """Yield queries, and report their number at intervals."""
        for place, query in enumerate(queries):
            self.check()
            now = self._clock()
            if now - self._said >= _SAID_SECONDS:
                self._said = now
                self._say(f"{self._what}: query {place + 1:,} of {len(queries):,}")
            yield query


UNLIMITED: Final = Progress()
"""Reports nothing and has no time limit."""
