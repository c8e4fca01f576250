"""Some early reports of each open pane, which answers about it leave out.

An answer about an open pane must lack at least `minimum` of the reports that its final will have,
or the difference of both would be about fewer. It may lack any reports, as long as all answers lack
the same. So each partition keeps `minimum` of the first reports that it counts in a pane, of
records as many about each attribute, as a *reserve*: of a batch with more, any. A reserve grows
until it has as many, and then never changes. Partition 0 chooses, once for a pane, which of all
reserved reports answers leave out (`ldpstream.agents.state.releases`).

The reports are stored batch by batch, in chunks of whole reports.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldpstream.agents.state.cell_encoding import VERSION_BYTE, other_version
from ldpstream.agents.state.records import RecordError
from ldpstream.mechanisms.interface.mechanism import Mechanism, Reports

_CHUNK_BYTES: Final = 64 << 10

Rows = NDArray[np.uint8]
"""Encoded reports, one a row."""


def decode_reserve(mechanism: Mechanism, stored: Mapping[int, bytes]) -> Rows:
    """Return the rows of a pane's reserve, given its chunks by number."""
    width, arrays = mechanism.report_bytes, []
    if sorted(stored) != [*range(len(stored))]:
        raise RecordError("changelog chunks of a reserve have a gap")
    for _, value in sorted(stored.items()):
        if value[:1] != VERSION_BYTE:
            raise other_version(value, "chunk of a reserve")
        if len(value) < 2 or (len(value) - 1) % width:
            raise RecordError("changelog chunk of a reserve has the wrong length")
        arrays.append(value[1:])
    return np.frombuffer(b"".join(arrays), dtype=np.uint8).reshape(-1, width)


class Reserves:
    """The reserves of one partition's open panes in its owner's memory."""

    def __init__(self, mechanism: Mechanism, minimum: int) -> None:
        self._mechanism = mechanism
        self._minimum = minimum
        self._chunk = max(1, _CHUNK_BYTES // mechanism.report_bytes)
        self._rows: dict[int, Rows] = {}
        # How many more reports about each attribute a pane's reserve takes, int64 `(attributes,)`.
        self._missing: dict[int, NDArray[np.int64]] = {}

    def load(self, pane: int, stored: Mapping[int, bytes]) -> None:
        """Load a pane's reserve from its chunks by number."""
        rows = decode_reserve(self._mechanism, stored)
        attributes = self._mechanism.attributes_of(self._mechanism.decode(rows)[0])
        counts = np.bincount(attributes, minlength=len(self._mechanism.slices))
        self._rows[pane] = rows
        self._missing[pane] = np.maximum(self._minimum - counts, 0)

    def add(self, pane: int, reports: Reports) -> range:
        """Keep those of the reports counted in a pane that its reserve lacks.

        Returns the numbers of the chunks that have changed.
        """
        missing = self._missing.get(pane)
        if missing is None:
            attributes = len(self._mechanism.slices)
            missing = self._missing[pane] = np.full(attributes, self._minimum, dtype=np.int64)
            self._rows[pane] = np.zeros((0, self._mechanism.report_bytes), dtype=np.uint8)
        if not missing.any():
            return range(0)
        if len(reports) > 1:
            # A frame's reports are sorted, so its first ones are alike: without just those, shares
            # would be wrong. Any order that does not depend on the reports will do.
            reports = reports[np.random.default_rng(len(reports)).permutation(len(reports))]
        if len(missing) == 1:
            few = reports[: missing[0]]
            missing[0] -= len(few)
        else:
            attributes_of = self._mechanism.attributes_of(reports)
            places = _first_of_each(attributes_of, missing)
            few = reports[places]
            missing -= np.bincount(attributes_of[places], minlength=len(missing))
        if not len(few):
            return range(0)
        first = len(self._rows[pane])
        self._rows[pane] = np.concatenate((self._rows[pane], self._mechanism.encode(few)))
        return range(first // self._chunk, (len(self._rows[pane]) - 1) // self._chunk + 1)

    def value(self, pane: int, number: int) -> bytes:
        """Return the stored value of a chunk."""
        rows = self._rows[pane][number * self._chunk : (number + 1) * self._chunk]
        return VERSION_BYTE + rows.tobytes()

    def drop(self, pane: int) -> None:
        """Drop a pane's reserve, if any."""
        self._rows.pop(pane, None)
        self._missing.pop(pane, None)


def _first_of_each(attributes: NDArray[np.int64], most: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the places of the first `most[a]` reports about each attribute a, in order."""
    places = np.flatnonzero(most[attributes])
    # NumPy sorts 16-bit integers by radix sort, in linear time; a mechanism has 256 attributes.
    places_in_order = places[np.argsort(attributes[places].astype(np.uint16), kind="stable")]
    counts = np.bincount(attributes[places], minlength=len(most))
    rank = np.arange(len(places_in_order)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.sort(places_in_order[rank < most[attributes[places_in_order]]])
