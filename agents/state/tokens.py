"""The tokens counted in open panes, and which of their chunks a flush has to write.

A report whose token was already counted in its pane is a repeat. Only open panes are held, since a
report for a closed pane is late whatever its token. A pane's tokens are stored in counting order,
in chunks of 1,024. A full chunk never changes, so a flush writes only the chunks from the last
unfilled one on. In memory tokens are sorted runs, each less than half as long as the one before: 8
bytes per token and no Python loop over tokens.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldpstream.agents.state.cell_encoding import VERSION_BYTE, other_version
from ldpstream.agents.state.records import RecordError
from ldpstream.mechanisms.wire.one_report import TOKEN_BYTES

_STORED: Final = np.dtype("<u8")

Numbers = NDArray[np.uint64]
"""Tokens as little-endian numbers, used for equality only."""


def as_numbers(tokens: NDArray[np.uint8]) -> Numbers:
    """Return tokens, uint8 `(n, 8)`, as numbers `(n,)`."""
    return np.ascontiguousarray(tokens).view(_STORED)[:, 0].astype(np.uint64, copy=False)


def encode_tokens(tokens: Numbers) -> bytes:
    """Return the value of a chunk."""
    return VERSION_BYTE + tokens.astype(_STORED, copy=False).tobytes()


def token_count(value: bytes) -> int:
    """Return how many tokens a chunk's value holds."""
    if value[:1] != VERSION_BYTE:
        raise other_version(value, "chunk of tokens")
    count, rest = divmod(len(value) - 1, TOKEN_BYTES)
    if rest or count < 1:
        raise RecordError("changelog chunk of tokens has the wrong length")
    return count


def decode_tokens(data: bytes) -> Numbers:
    """Return the tokens of a chunk."""
    token_count(data)
    return np.frombuffer(data, _STORED, offset=1).astype(np.uint64)


def again(panes: NDArray[np.int64], tokens: Numbers) -> NDArray[np.bool_]:
    """Return, bool `(n,)`, which of n tokens repeat an earlier one of the same pane."""
    repeats = np.zeros(len(tokens), dtype=np.bool_)
    ordered = np.sort(tokens)
    if np.any(ordered[1:] == ordered[:-1]):
        # lexsort is stable: equal pairs keep their order.
        places_in_order = np.lexsort((tokens, panes))
        tokens, panes = tokens[places_in_order], panes[places_in_order]
        repeats[places_in_order[1:]] = (tokens[1:] == tokens[:-1]) & (panes[1:] == panes[:-1])
    return repeats


def _by_pane(panes: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield each distinct pane of `(n,)` with its places in order.

    Uses one sort instead of a scan for each pane: a message may name 65,535 panes.
    """
    places_in_order = np.argsort(panes, kind="stable")
    numbers, starts = np.unique(panes[places_in_order], return_index=True)
    yield from zip(numbers.tolist(), np.split(places_in_order, starts[1:]), strict=True)


class _Pane:
    """One pane's tokens: sorted `runs`, and those from chunk `first` on in counting order."""

    __slots__ = ("chunk", "count", "first", "last", "runs")

    def __init__(self, stored: Mapping[int, bytes], chunk: int) -> None:
        self.chunk = chunk
        chunks = [decode_tokens(value) for _, value in sorted(stored.items())]
        lengths = [len(tokens) for tokens in chunks]
        whole = all(length == chunk for length in lengths[:-1]) and max(lengths, default=0) <= chunk
        if not whole or sorted(stored) != [*range(len(stored))]:
            raise RecordError("changelog chunks of tokens have a gap, or one is too long")
        self.count = sum(map(len, chunks))
        self.first = self.count // chunk
        self.last = chunks[-1:] if self.count % chunk else []
        self.runs = [np.sort(np.concatenate(chunks))] if chunks else []

    def has(self, tokens: Numbers) -> NDArray[np.bool_]:
        """Return which of these tokens the pane has."""
        # Sorted, so that consecutive searches touch the same memory.
        ordered = np.sort(tokens)
        repeats = np.zeros(len(tokens), dtype=np.bool_)
        for run in self.runs:
            place = np.searchsorted(run, ordered)
            place[place == len(run)] = 0
            repeats |= run[place] == ordered
        return np.isin(tokens, ordered[repeats]) if repeats.any() else repeats

    def add(self, tokens: Numbers) -> range:
        """Add tokens that are not present; return the numbers of the chunks touched."""
        end = self.count + len(tokens)
        touched = range(self.count // self.chunk, (end - 1) // self.chunk + 1)
        self.count = end
        self.last.append(tokens)
        run = np.sort(tokens)
        while self.runs and len(self.runs[-1]) < 2 * len(run):
            # A stable sort merges sorted runs in linear time.
            run = np.sort(np.concatenate((self.runs.pop(), run)), kind="stable")
        self.runs.append(run)
        return touched

    def value(self, number: int) -> bytes:
        """Return the stored value of a chunk."""
        if len(self.last) > 1:
            self.last = [np.concatenate(self.last)]
        start = (number - self.first) * self.chunk
        return encode_tokens(self.last[0][start : start + self.chunk])

    def flushed(self) -> None:
        """Drop the order of the full chunks, which are written."""
        full = self.count // self.chunk
        if full > self.first:
            # A copy: a view would keep everything already written in memory.
            rest = np.concatenate(self.last)[(full - self.first) * self.chunk :].copy()
            self.first, self.last = full, [rest] if len(rest) else []


class Tokens:
    """The tokens counted in a partition's open panes, stored in chunks of `chunk` tokens."""

    def __init__(self, chunk: int) -> None:
        self._chunk = chunk
        self._panes: dict[int, _Pane] = {}
        # Panes with chunks to be written, and the number of tokens that no pane exceeds.
        self._changed: set[int] = set()
        self._fullest = 0

    def load(self, pane: int, stored: Mapping[int, bytes]) -> None:
        """Load a pane's tokens from its chunks by number, all but the last of them full."""
        loaded = self._panes[pane] = _Pane(stored, self._chunk)
        self._fullest = max(self._fullest, loaded.count)

    def repeated(self, panes: NDArray[np.int64], tokens: Numbers) -> NDArray[np.bool_]:
        """Return, bool `(n,)`, which of n tokens have been counted in their panes, `(n,)`."""
        repeats = np.zeros(len(tokens), dtype=np.bool_)
        if not len(panes):
            return repeats
        if (panes == panes[0]).all():
            alone = self._panes.get(int(panes[0]))
            return repeats if alone is None else alone.has(tokens)
        for pane, rows in _by_pane(panes):
            if pane_tokens := self._panes.get(pane):
                repeats[rows] = pane_tokens.has(tokens[rows])
        return repeats

    def crowded(
        self, panes: NDArray[np.int64], tokens: Numbers, new: NDArray[np.bool_], most: int
    ) -> NDArray[np.bool_]:
        """Return, bool `(n,)`, which of n tokens, `(n,)`, no longer fit into their panes, `(n,)`.

        A pane holds at most `most` tokens. Those in `new`, bool `(n,)`, are not present yet and are
        the first of their token and pane; a repeat does not fit if the first did not.
        """
        crowded_tokens = np.zeros(len(tokens), dtype=np.bool_)
        if self._fullest + len(tokens) <= most or not new.any():
            return crowded_tokens
        places = np.flatnonzero(new)
        for pane, some in _by_pane(panes[places]):
            pane_tokens = self._panes.get(pane)
            room = max(0, most - (0 if pane_tokens is None else pane_tokens.count))
            crowded_tokens[places[some[room:]]] = True
        if crowded_tokens.any():
            pairs = np.rec.fromarrays((panes, tokens))
            crowded_tokens = np.isin(pairs, pairs[crowded_tokens])
        return crowded_tokens

    def add(self, pane: int, tokens: Numbers) -> range:
        """Add the tokens of counted reports to a pane; return the numbers of the chunks touched."""
        pane_tokens = self._panes.get(pane)
        if pane_tokens is None:
            pane_tokens = self._panes[pane] = _Pane({}, self._chunk)
        touched = pane_tokens.add(tokens)
        self._changed.add(pane)
        self._fullest = max(self._fullest, pane_tokens.count)
        return touched

    def value(self, pane: int, number: int) -> bytes:
        """Return the stored value of a chunk."""
        return self._panes[pane].value(number)

    def drop(self, pane: int) -> None:
        """Drop a pane, if it is held."""
        self._panes.pop(pane, None)

    def flushed(self) -> None:
        """Note that all chunks have been written, and the panes that closed were dropped."""
        for pane in self._changed & self._panes.keys():
            self._panes[pane].flushed()
        self._changed.clear()
        self._fullest = max((pane_tokens.count for pane_tokens in self._panes.values()), default=0)
