"""The draws of `l1-geometric` as docs/wire.md specifies them, one word at a time.

An implementation of its own, in plain integers and lists.
"""

from fractions import Fraction

from ldpstream.mechanisms.entropy import WORD, Entropy
from ldpstream.mechanisms.l1_geometric import L1Geometric


def word(entropy: Entropy) -> int:
    return int(entropy.words(1)[0])


def trials(threshold: int, levels: list[int], entropy: Entropy) -> list[bool]:
    """One trial of `a^(2^level)` each: all first words, then those that ties need."""
    firsts = [word(entropy) for _ in levels]
    won = []
    for level, drawn in zip(levels, firsts, strict=True):
        power = threshold ** (1 << level)
        digits = [power >> 64 * i & (WORD - 1) for i in reversed(range(1 << level))]
        place = 0
        while drawn == digits[place] and place + 1 < len(digits):
            drawn, place = word(entropy), place + 1
        won.append(drawn < digits[place])
    return won


def signs_and_digits(threshold: int, rows: int, s: int, entropy: Entropy) -> list[list[int]]:
    cells = [[0] * (1 + s) for _ in range(rows)]
    left = [(row, column) for row in range(rows) for column in range(1 + s)]
    while left:
        words = [word(entropy) for _ in range(-(-len(left) // 64))]
        tossed = [cell for i, cell in enumerate(left) if words[i // 64] >> i % 64 & 1]
        won = trials(threshold, [max(column - 1, 0) for _, column in tossed], entropy)
        left = []
        for (row, column), success in zip(tossed, won, strict=True):
            cells[row][column] = int(success)
            if not success:
                left.append((row, column))
    return cells


def moved(
    threshold: int, largest: int, pairs: list[tuple[int, int]], entropy: Entropy
) -> list[int]:
    """Move coordinates, each with the last one of its dimension."""
    s = 0
    while Fraction(threshold, WORD) ** (1 << s) >= Fraction(1, 2) and 1 << s < largest:
        s += 1
    cells = signs_and_digits(threshold, len(pairs), s, entropy)
    sizes = [sum(bit << j for j, bit in enumerate(bits)) for _, *bits in cells]
    rooms = [last - x - 1 if up else x for (x, last), (up, *_) in zip(pairs, cells, strict=True)]
    going = [c for c, room in enumerate(rooms) if sizes[c] < room]
    while going:
        won = trials(threshold, [s] * len(going), entropy)
        for c, success in zip(going, won, strict=True):
            sizes[c] += success << s
        going = [
            c for c, success in zip(going, won, strict=True) if success and sizes[c] < rooms[c]
        ]
    return [
        min(x + 1 + size, last) if up else max(x - size, 0)
        for (x, last), (up, *_), size in zip(pairs, cells, sizes, strict=True)
    ]


def as_specified(mechanism: L1Geometric, values: list[int], entropy: Entropy) -> list[int]:
    """Return the reports of values, in row-major order as they are."""
    extents = [m for m in mechanism.shape if m > 1]
    pairs: list[tuple[int, int]] = []
    for value in values:
        rest, split = value, []
        for m in reversed(extents):
            rest, x = divmod(rest, m)
            split.insert(0, (x, m - 1))
        pairs += split
    drawn = moved(mechanism.threshold, max(extents), pairs, entropy)
    reports = []
    for place in range(0, len(drawn), len(extents)):
        report = 0
        for m, y in zip(extents, drawn[place:], strict=False):
            report = report * m + y
        reports.append(report)
    return reports
