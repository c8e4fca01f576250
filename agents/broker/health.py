"""Watch whether the broker answers: one line of the log when it stops and one when it is back."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection
from typing import Final

from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError

_STEP_SECONDS: Final = 1.0
_SILENCE_SECONDS: Final = 5.0
NO_ANSWER: Final = "the broker does not answer"

log = logging.getLogger(__name__)


class BrokerWatch:
    """Whether the broker answers, as seen by one consumer."""

    def __init__(self) -> None:
        self.silent = False
        """Whether nothing has been fetched for five seconds."""
        self.problem = NO_ANSWER
        """Why, while it is `silent`."""
        self.overdue = False
        """Whether nothing has been fetched since the last look, a second before."""
        self.answers_since = 0.0
        """When it answered again after a silence, on the monotonic clock."""
        self._last: int | None = None
        self._answered_at = 0.0
        self._explained: float | None = None

    async def run(
        self,
        consumer: AIOKafkaConsumer,
        bootstrap: str,
        *,
        topics: Callable[[], Collection[str]],
        why: Callable[[Collection[str]], Awaitable[str]],
    ) -> None:
        """Watch how long a consumer's fetches have been unanswered, until cancelled.

        `consumer` must fetch continuously: even with nothing to read it gets an answer every half
        second. Of what it fetches `topics` count: those of a collection that has stopped may be
        gone. `why` asks the broker why there is no answer about them; it returns an empty text if
        that does not answer either.
        """
        while True:
            slept = time.monotonic()
            await asyncio.sleep(_STEP_SECONDS)
            now = time.monotonic()
            # If it slept longer, this process itself was suspended.
            if now - slept <= 2 * _STEP_SECONDS:
                watched = topics()
                read = [p for p in consumer.assignment() if p.topic in watched]
                self.silent = self.silent and bool(read)
                answered = [consumer.last_poll_timestamp(p) for p in read]
                stamp = max((ms for ms in answered if ms is not None), default=None)
                problem = await why(watched) if self.due(stamp, now) else ""
                self.update(stamp, bootstrap, now, problem=problem)

    def due(self, stamp: int | None, now: float) -> bool:
        """Return whether nothing has been fetched for so long that the cause matters."""
        return (
            stamp is not None and stamp == self._last and now - self._answered_at > _SILENCE_SECONDS
        )

    def update(self, stamp: int | None, bootstrap: str, now: float, *, problem: str = "") -> None:
        """Check the client's timestamp of the last answer; `now` is on the monotonic clock.

        Timestamps are by the wall clock, which may be set, so they are only compared for equality.
        `problem` says why there is no answer, if the broker answers otherwise.
        """
        self.overdue = stamp is not None and stamp == self._last
        if stamp is None:
            return
        before, silent = self._answered_at, self.due(stamp, now)
        if stamp != self._last:
            self._last, self._answered_at = stamp, now
        if not problem:
            self._explained = None
        elif self._explained is None:
            self._explained = now
        if self._explained is not None and now - self._explained < _SILENCE_SECONDS:
            # One that has just come back answers before it knows its topics, and sends anything.
            silent, problem = silent and self.silent, self.problem
        if silent and not (self.silent and self.problem == (problem or NO_ANSWER)):
            if problem not in ("", NO_ANSWER):
                log.warning("nothing can be read: %s", problem)
            else:
                log.warning("no answer from the broker at %s: waiting for it", bootstrap)
        elif self.silent and not silent:
            log.info("the broker at %s answers again after %.0f s", bootstrap, now - before)
            self.answers_since = now
        self.silent, self.problem = silent, problem or NO_ANSWER


class GroupWatch:
    """Whether the broker refuses this worker in its group, which then assigns it no partitions."""

    def __init__(self) -> None:
        self.problem = ""
        """Why, as a sentence; empty if it does not."""
        self._quiet = False

    def update(self, problem: str) -> None:
        """Take over what the group's client reports now; log what changes.

        A join takes a while, so the broker refuses no longer once it has been silent twice.
        """
        if problem:
            self._quiet = False
            if problem != self.problem:
                log.error("%s", problem)
            self.problem = problem
        elif not self._quiet:
            self._quiet = True
        elif self.problem:
            log.info("the broker no longer refuses this worker in its group")
            self.problem = ""


def log_transient_error(error: KafkaError) -> None:
    """Log an error from which a reader recovers by itself."""
    log.debug("the broker refused or did not answer: %r", error)
