"""The records of a batch together, without an object per record."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

_APPENDED: Final = 1
"""Timestamp type of records whose timestamp the broker has set (LogAppendTime)."""

Fetched = Any
"""A record as a consumer or a batch returns it, whose classes have no types in common."""


@dataclass(frozen=True, slots=True)
class Run:
    """N >= 1 records of one partition, offsets ascending (a `range` if consecutive).

    `appended` says that the broker has set all timestamps, `times_ms`.
    """

    offsets: Sequence[int]
    values: Sequence[bytes | None]
    times_ms: Sequence[int]
    appended: bool

    @classmethod
    def of(cls, records: Sequence[Fetched]) -> "Run":
        """Return records, at least one, as a run."""
        first, last = records[0].offset, records[-1].offset
        consecutive = last - first == len(records) - 1
        offsets = range(first, last + 1) if consecutive else [r.offset for r in records]
        return cls(
            offsets,
            [record.value for record in records],
            [record.timestamp for record in records],
            all(record.timestamp_type == _APPENDED for record in records),
        )

    @property
    def offset(self) -> int:
        """The last offset: the fetch continues after it."""
        return self.offsets[-1]


def runs(found: Sequence[Run | Fetched]) -> Sequence[Run]:
    """Return a consumer's records of a partition as runs."""
    made: list[Run] = []
    single: list[Fetched] = []
    for one in found:
        if isinstance(one, Run):
            if single:
                made.append(Run.of(single))
                single = []
            made.append(one)
        else:
            single.append(one)
    return [*made, Run.of(single)] if single else made
