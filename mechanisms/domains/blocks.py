"""Partitions of a domain into blocks, and how a configuration writes them.

Values of one block are protected from each other; the block itself is disclosed.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ldpstream.mechanisms.base.arrays import Indices
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.checks import describe, is_whole
from ldpstream.mechanisms.base.errors import SpecError


@dataclass(frozen=True, repr=False)
class Blocks:
    """A partition of the values into blocks: `of_value[x]` is the block of value x, int64 `(k,)`.

    Blocks are numbered from 0. `sizes`, int64 `(count,)`, holds the number of values of each block.
    Within a block, values keep their order in the domain. `digest`, the SHA-256 in hex of
    `of_value` as little-endian int32, is the partition's identity. `names` are those that a file of
    labels gives its blocks, which only people read.

    Raises:
        ValueError: if there is no value, or a number between 0 and the largest has no value.
    """

    of_value: Indices = field(compare=False)
    names: tuple[str, ...] | None = field(default=None, compare=False)
    sizes: Indices = field(init=False, compare=False)
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        table = np.array(self.of_value, dtype=np.int64)
        if table.ndim != 1 or table.size == 0 or table.min() < 0:
            raise ValueError("expected a block number from 0 on for each of at least one value")
        sizes = np.bincount(table)
        if not sizes.all():
            raise ValueError(f"block {int(np.argmin(sizes))} holds no value")
        table.flags.writeable = False
        sizes.flags.writeable = False
        digest = hashlib.sha256(table.astype("<i4").tobytes()).hexdigest()
        for name, value in (("of_value", table), ("sizes", sizes), ("digest", digest)):
            object.__setattr__(self, name, value)

    @classmethod
    def one(cls, size: int) -> "Blocks":
        """Return the partition of `size` values into a single block: classical LDP."""
        return cls(np.zeros(size, dtype=np.int64))

    @cached_property
    def size(self) -> int:
        """The number of values."""
        return len(self.of_value)

    @cached_property
    def count(self) -> int:
        """The number of blocks."""
        return len(self.sizes)

    @cached_property
    def position(self) -> Indices:
        """The place of each value within its block, from 0: int64 `(k,)`."""
        by_block = np.argsort(self.of_value, kind="stable")
        starts = np.cumsum(self.sizes) - self.sizes
        position = np.empty_like(by_block)
        position[by_block] = np.arange(self.size) - np.repeat(starts, self.sizes)
        return position

    def runs(self) -> list[tuple[int, int]]:
        """Return `(block, length)` of each run of neighbouring values of one block, in order."""
        changes = np.flatnonzero(np.diff(self.of_value)) + 1
        starts = np.concatenate(([0], changes))
        lengths = np.diff(starts, append=self.size)
        return list(zip(self.of_value[starts].tolist(), lengths.tolist(), strict=True))

    def tables(self) -> dict[str, Json]:
        """Return the block of every value for documents of devices; nothing if there is one."""
        if self.count == 1:
            return {}
        return {"blocks": [[block, length] for block, length in self.runs()]}

    def __repr__(self) -> str:
        return f"Blocks({self.count} blocks of {self.size} values)"


def consecutive_blocks(size: int, length: object, path: str) -> Blocks:
    """Return blocks of `length` consecutive values; the last one may be shorter.

    Raises:
        SpecError: if the length is not a whole number in `1..size`.
    """
    if not is_whole(length) or not 1 <= length <= size:
        raise SpecError(path, f"a number of values in 1..{size}, got {describe(length)}")
    return Blocks(np.arange(size, dtype=np.int64) // length)


def box_blocks(shape: Sequence[int], lengths: Sequence[object], path: str) -> Blocks:
    """Return blocks of h x w cells of a grid (or boxes in D dimensions), in row-major order.

    Blocks at the far edges may be smaller.

    Raises:
        SpecError: unless there is a whole number in `1..extent` for each dimension.
    """
    if len(lengths) != len(shape):
        raise SpecError(path, f"{len(shape)} numbers of cells, got {len(lengths)}")
    table = np.zeros((1,) * len(shape), dtype=np.int64)
    for axis, (extent, length) in enumerate(zip(shape, lengths, strict=True)):
        if not is_whole(length) or not 1 <= length <= extent:
            raise SpecError(
                f"{path}[{axis}]", f"a number of cells in 1..{extent}, got {describe(length)}"
            )
        along = [1] * len(shape)
        along[axis] = extent
        block = np.arange(extent, dtype=np.int64).reshape(along) // length
        table = table * -(-extent // length) + block
    return Blocks(table.ravel())


def listed_blocks(size: int, lists: Sequence[Sequence[int]], path: str) -> Blocks:
    """Return the blocks that lists of value indices describe, in the order of the lists.

    Raises:
        SpecError: if a block is empty, or a value is in two blocks or in none.
    """
    table = np.full(size, -1, dtype=np.int64)
    for number, members in enumerate(lists):
        if len(members) == 0:
            raise SpecError(f"{path}[{number}]", "at least one value, got an empty block")
        for place, value in enumerate(members):
            if table[value] >= 0:
                raise SpecError(
                    f"{path}[{number}][{place}]",
                    f"each value in one block, got one that block {int(table[value])} holds too",
                )
            table[value] = number
    missing = int(np.count_nonzero(table < 0))
    if missing:
        raise SpecError(path, f"every value in a block, got {missing} of {size} in none")
    return Blocks(table)


def named_blocks(names: Sequence[str]) -> Blocks:
    """Return the blocks of values with the same name, in order of first appearance."""
    numbers = {name: i for i, name in enumerate(dict.fromkeys(names))}
    return Blocks(np.array([numbers[name] for name in names], dtype=np.int64), tuple(numbers))
