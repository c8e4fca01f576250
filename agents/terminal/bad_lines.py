"""The bad lines of an input: all are counted, the first are named."""

from dataclasses import dataclass, field
from typing import Final

from ldpstream.agents.terminal.errors import Refused

_NAMED: Final = 3
_ENOUGH: Final = 10_000
"""After this many bad lines the rest of a file is not read: each costs some 30 us."""


@dataclass
class BadLines:
    """The bad lines among the `read` lines of the input `name`; their text is never kept."""

    name: str
    read: int = 0
    count: int = 0
    ended: bool = True
    """Whether the input was read to its end."""
    first: list[tuple[int, str]] = field(default_factory=list)
    """The number of each of the first bad lines, and what was expected there."""

    def note(self, line: int, expected: str) -> None:
        """Count a bad line; lines come in order, from 1 on."""
        self.count += 1
        if len(self.first) < _NAMED:
            self.first.append((line, expected))

    def enough(self, lines: int, chunk: int, *, whole: bool) -> bool:
        """Return whether to stop after a chunk of `lines` lines, some of them bad.

        Only a `whole` input is read on, to count its bad lines: a pipe may never end. A file that
        is bad throughout is not worth reading.
        """
        if whole and self.count < _ENOUGH:
            return False
        self.ended = lines < chunk
        return True

    @property
    def said(self) -> str:
        """Say what was expected at the first one."""
        line, expected = self.first[0]
        return f"line {line}: expected {expected}"

    def refusal(self, way_out: str = "") -> Refused:
        """Return the refusal of an input with bad lines; `way_out` says what to do."""
        if self.count == 1:
            return Refused(f"{self.name}: {self.said}{way_out}")
        others = ", ".join(f"{line:,}" for line, _ in self.first[1:])
        more = ", ..." if self.count > len(self.first) else ""
        of = "of" if self.ended else "of the first"
        bad = f"{self.count:,} {of} {self.read:,} lines are bad, also {others}{more}"
        return Refused(f"{self.name}: {self.said}; {bad}{way_out}")
