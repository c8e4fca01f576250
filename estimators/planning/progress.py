"""What a plan is at, and when its time is up."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

_SAID_SECONDS: Final = 0.5
_Item = TypeVar("_Item")


class TimeUpError(Exception):
    """The time for comparing mechanisms is up."""


class Progress:
    """Tells `say` what goes on, and ends what takes longer than some seconds from now on.

    Time is looked at between queries: a step that is begun, such as preparing a decoder, ends.
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
        """Go on.

        Raises:
            TimeUpError: where the time is up.
        """
        if self._clock() >= self._until:
            raise TimeUpError

    def begin(self, what: str) -> None:
        """Say what begins.

        Raises:
            TimeUpError: where the time is up.
        """
        self.check()
        self._what, self._said = what, self._clock()
        self._say(what)

    def each(self, queries: Sequence[_Item]) -> Iterator[_Item]:
        """Yield queries, and say now and then how many there were.

        Raises:
            TimeUpError: where the time is up.
        """
        for place, query in enumerate(queries):
            self.check()
            now = self._clock()
            if now - self._said >= _SAID_SECONDS:
                self._said = now
                self._say(f"{self._what}: query {place + 1:,} of {len(queries):,}")
            yield query


UNLIMITED: Final = Progress()
"""Tells nobody, and never ends."""
