"""A device's journal: what the broker has acknowledged, on disk as soon as the device knows it.

It outlives a device that is killed: the next one goes on with what is missing in it, and at the end
the topic has to hold every message of it. The topic may hold more: a message whose acknowledgement
never came is decided by reading the topic.
"""

import os
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ENTRY = np.dtype(
    [("number", "<i8"), ("partition", "<i4"), ("aborted", "<i4"), ("offset", "<i8"), ("crc", "<u8")]
)


def crc(value: bytes | None) -> int:
    """Return the checksum of a message's value; a number that no value has for None."""
    return 1 << 32 if value is None else zlib.crc32(value)


@dataclass(frozen=True)
class Journal:
    """A file of entries that is only appended to, one write an entry or a transaction."""

    path: Path

    def read(self) -> NDArray[np.void]:
        """Return all entries; one that was being written when its device was killed is left out."""
        data = self.path.read_bytes() if self.path.exists() else b""
        return np.frombuffer(data[: len(data) // ENTRY.itemsize * ENTRY.itemsize], dtype=ENTRY)

    def mend(self) -> None:
        """Cut off an entry that was never finished, so that others may follow."""
        if self.path.exists():
            os.truncate(self.path, len(self.read()) * ENTRY.itemsize)

    def ends(self) -> dict[int, int]:
        """Return the offset after the last acknowledged message of each partition."""
        entries = self.read()
        return {
            int(p): int(entries["offset"][entries["partition"] == p].max()) + 1
            for p in np.unique(entries["partition"])
        }
