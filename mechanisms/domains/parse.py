"""Domains read from a configuration, with the blocks that it divides them into."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from ldpstream.mechanisms.base.checks import check_keys, describe, is_whole
from ldpstream.mechanisms.base.errors import SpecError, ValueOutsideDomainError, within
from ldpstream.mechanisms.domains.base import Domain
from ldpstream.mechanisms.domains.blocks import (
    Blocks,
    box_blocks,
    consecutive_blocks,
    listed_blocks,
)
from ldpstream.mechanisms.domains.interval import Interval, RoundedInterval
from ldpstream.mechanisms.domains.labels import Labels, read_labels
from ldpstream.mechanisms.domains.lattice import Grid, Lattice, Size, Sizes
from ldpstream.mechanisms.domains.words import read_words

__all__ = [
    "Domain",
    "Grid",
    "Interval",
    "Labels",
    "Lattice",
    "RoundedInterval",
    "Size",
    "Sizes",
    "parse_blocks",
    "parse_domain",
]

_KINDS = ("values", "size", "grid", "sizes", "interval", "file", "words")
DOMAIN_KEYS: Final[Mapping[str, str]] = {
    "values": "A list of labels, texts or whole numbers",
    "size": "The number of values, which are 0, 1, 2, ...",
    "grid": "[rows, columns]",
    "sizes": "The number of values of each dimension",
    "interval": "[low, high], or such a pair for each dimension; needs bins",
    "file": "A CSV file of labels, with blocks in a second column if there are any",
    "words": "Texts that are not known in advance, discovered in rounds",
    "bins": "The number of bins of an interval, or of each dimension",
    "rounding": '"random": numbers are rounded at random to edges of bins: means are unbiased',
    "blocks": "Consecutive values in a block: a number, or [h, w] on a grid; or lists of labels",
    "attributes": "For records: a table for each attribute, with the keys of its domain, and of "
    "its mechanism if that is not the collection's",
    "pairs": "For records: pairs of attributes to tabulate together, as [[NAME, NAME], ...]; each "
    "is one more attribute, NAME:NAME",
    "header": "Whether the first line of the file names its columns",
}
"""The meaning of each key of a `domain` table, which has exactly one of the first seven."""
_ONLY: Final = {"rounding": "interval", "header": "file", "pairs": "attributes"}
OF_RECORDS: Final = frozenset({"attributes", "pairs"})
"""The keys of a `domain` table for records."""


def parse_domain(raw: object, *, path: str, base: Path) -> tuple[Domain, Blocks | None]:
    """Return the domain of a `domain` table, and its blocks if it has any.

    Errors name `path`, the key path of the table. A `file` is relative to the folder `base`.
    """
    if not isinstance(raw, dict):
        raise SpecError(path, f"a table with one of {', '.join(_KINDS)}, got {describe(raw)}")
    table = check_keys(raw, frozenset(DOMAIN_KEYS), path)
    kinds = [kind for kind in _KINDS if kind in table]
    if len(kinds) != 1:
        got = ", ".join(kinds) or "none of them"
        raise SpecError(path, f"exactly one of {', '.join(_KINDS)}, got {got}")
    if ("bins" in table) != (kinds == ["interval"]):
        got = "none" if kinds == ["interval"] else f"them with {kinds[0]}"
        raise SpecError(f"{path}.bins", f"bins with an interval, and only there, got {got}")
    for key, kind in _ONLY.items():
        if key in table and kinds[0] != kind:
            raise SpecError(f"{path}.{key}", f"{key} with {kind}, and only there")
    domain: Domain
    blocks: Blocks | None = None
    with within(path):
        if kinds == ["file"]:
            domain, blocks = read_labels(table["file"], base, header=table.get("header"))
        else:
            domain = _PARSERS[kinds[0]](table)
    if "blocks" in table:
        if blocks is not None:
            raise SpecError(f"{path}.blocks", "blocks here or in the file's second column")
        blocks = parse_blocks(table["blocks"], domain, f"{path}.blocks")
    return domain, blocks


def _list(table: dict[str, object], key: str) -> list[Any]:
    raw = table[key]
    if not isinstance(raw, list):
        raise SpecError(key, f"a list, got {describe(raw)}")
    return raw


def _values(table: dict[str, object]) -> Domain:
    return Labels(tuple(_list(table, "values")))


def _size(table: dict[str, object]) -> Domain:
    size = table["size"]
    if not is_whole(size):
        raise SpecError("size", f"a whole number, got {describe(size)}")
    return Size(size)


def _grid(table: dict[str, object]) -> Domain:
    extents = _list(table, "grid")
    if len(extents) != 2:
        raise SpecError("grid", f"[rows, columns], got {describe(extents)}")
    return Grid(*extents)


def _sizes(table: dict[str, object]) -> Domain:
    return Sizes(tuple(_list(table, "sizes")))


def _interval(table: dict[str, object]) -> Domain:
    bounds = _list(table, "interval")
    several = all(isinstance(pair, list) for pair in bounds)
    pairs = bounds if several else [bounds]
    numbers: list[tuple[float, float]] = []
    for axis, pair in enumerate(pairs):
        key = f"interval[{axis}]" if several else "interval"
        if len(pair) != 2 or not all(
            isinstance(v, int | float) and not isinstance(v, bool) for v in pair
        ):
            raise SpecError(key, f"[low, high], two numbers, got {describe(pair)}")
        try:
            low, high = float(pair[0]), float(pair[1])
        except OverflowError:
            raise SpecError(key, "numbers of double precision, got a huge one") from None
        if (low, high) != (pair[0], pair[1]):
            raise SpecError(key, "numbers that doubles hold, got an integer between two of them")
        numbers.append((low, high))
    raw = table["bins"]
    bins: list[Any] = raw if isinstance(raw, list) else [raw] * len(numbers)
    interval = Interval(tuple(numbers), tuple(bins))
    if "rounding" not in table:
        return interval
    if table["rounding"] != "random":
        raise SpecError("rounding", f'"random", got {describe(table["rounding"])}')
    return RoundedInterval(interval)


_PARSERS: dict[str, Callable[[dict[str, object]], Domain]] = {
    "values": _values,
    "size": _size,
    "grid": _grid,
    "sizes": _sizes,
    "interval": _interval,
    "words": lambda table: read_words(table["words"]),
}


def parse_blocks(raw: object, domain: Domain, path: str) -> Blocks:
    """Return the blocks that a `blocks` key divides a domain into.

    The key holds a number of consecutive values, `[h, w]` on a grid (one number for each
    dimension), or a list of lists of labels.
    """
    if is_whole(raw):
        return consecutive_blocks(domain.size, raw, path)
    if not isinstance(raw, list) or not raw:
        raise SpecError(path, f"a number, [h, w] on a grid, or lists, got {describe(raw)}")
    if all(isinstance(block, list) for block in raw):
        return listed_blocks(domain.size, _indices(raw, domain, path), path)
    if domain.whole and len(domain.shape) > 1:
        return box_blocks(domain.shape, raw, path)
    raise SpecError(path, "a number of values, or a list of lists of values")


def _indices(lists: list[list[Any]], domain: Domain, path: str) -> list[list[int]]:
    blocks: list[list[int]] = []
    for number, members in enumerate(lists):
        try:
            blocks.append([int(i) for i in domain.index(members)])
        except ValueOutsideDomainError as error:
            raise SpecError(f"{path}[{number}][{error.position}]", error.expected) from None
    return blocks
