"""What the stream and the readers bring of a collection's partitions, for its guard."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ldpstream.agents.reading.contained import contained
from ldpstream.agents.reading.frames_guard import FramesGuard
from ldpstream.agents.reading.guard import Guard
from ldpstream.agents.reading.held import Held
from ldpstream.agents.reading.source import Record, Stretch


@dataclass(frozen=True)
class Intake:
    """Hands on what comes of the partitions that are held, and leaves what comes of others.

    `held` is the engine's own, by partition; `fail` is called with an error that nobody expected.
    """

    held: Mapping[int, Held]
    guard: Guard
    fail: Callable[[str], None]

    def ends_at(self, partition: int, end: int) -> None:
        """Note where the source ended when the stream last fetched."""
        with contained(self.fail):
            self.guard.ends_at(partition, end)

    def deliver(self, partition: int, records: Sequence[Record]) -> None:
        """Take messages from the stream, offsets ascending; any may be missing or repeated."""
        with contained(self.fail):
            held = self.held.get(partition)
            if held is not None:
                self.guard.deliver(held, records)

    def notice(self, partition: int, offset: int) -> None:
        """Take the news that something came at an offset, which may never be committed."""
        with contained(self.fail):
            held = self.held.get(partition)
            if held is not None:
                self.guard.notice(held, offset)

    def stretch(self, partition: int, stretch: Stretch) -> None:
        """Take a stretch that was read without a group."""
        with contained(self.fail):
            held = self.held.get(partition)
            if held is None:
                self.guard.rest(partition)
            else:
                self.guard.stretch(held, stretch)

    def outside(self, partition: int, asked: int, beginning: int) -> None:
        """Take the news that an offset is not in the source, which begins at `beginning`."""
        with contained(self.fail):
            held = self.held.get(partition)
            if held is not None:
                self.guard.outside(held, asked, beginning)

    def frames(self, partition: int, stretch: Stretch) -> None:
        """Take a stretch of the frames topic."""
        with contained(self.fail):
            held = self.held.get(partition)
            if held is not None and isinstance(self.guard, FramesGuard):
                self.guard.frames(held, stretch)

    def frames_outside(self, partition: int, beginning: int) -> None:
        """Take the news that the frames topic begins at `beginning`, above our place in it."""
        with contained(self.fail):
            held = self.held.get(partition)
            if held is not None and isinstance(self.guard, FramesGuard):
                self.guard.frames_outside(held, beginning)
