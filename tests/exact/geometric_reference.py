"""How the vectors draw `l1-geometric` and `matrix` (tests/vectors/README.md), one word at a time.

An implementation of its own, in plain integers and lists, of an exact way to draw G.

A *trial of level j* succeeds with probability a^(2^j): a word below the first 64 binary digits of
that number succeeds, one above fails, and one equal to them is decided by the next word and the
next 64 digits, and so on (a number whose digits have ended is not below itself). Of several trials
all first words are drawn first, then, in order, the further ones.

1. s is the least number with a^(2^s) < 1/2, or with 2^s at least the largest dimension.
2. Each coordinate (value by value, dimension by dimension) has 1 + s cells: the direction, of level
   0, and the digits 0 to s - 1 of G, each with its number as level. All undecided cells toss coins:
   the bits of as many words as they fill, from the lowest on. A cell with a 0 is 0. The others make
   a trial of their level: success is 1, failure leaves the cell undecided for the next round.
3. The direction is up where its cell is 1, and G begins as its digits. Each coordinate makes a
   trial of level s. Success adds 2^s to G, and the coordinate goes on; failure ends it. All
   coordinates do so together, round by round; where 2^s is at least the largest dimension there is
   one round. Then min(x + 1 + G, m - 1) (up) or max(x - G, 0) (down) is reported. How many words
   this takes does not depend on x.

`matrix` draws the same way. Its coordinates are the noisy rows, value by value, with x = A - low
and m = high - low + 1, each trial with its own row's a; s is found for the largest a and the
largest m. Many values are drawn in batches of 2^20/rows (rounded down, at least one), each with all
three steps.
"""

from fractions import Fraction

from ldpstream.mechanisms.exact.entropy import WORD, Entropy
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from ldpstream.mechanisms.families.matrix.matrix import Matrix


def word(entropy: Entropy) -> int:
    return int(entropy.words(1)[0])


def trials(asked: list[tuple[int, int]], entropy: Entropy) -> list[bool]:
    """One trial of `a^(2^level)` each, a threshold and a level: all first words, then ties'."""
    firsts = [word(entropy) for _ in asked]
    won = []
    for (threshold, level), drawn in zip(asked, firsts, strict=True):
        power = threshold ** (1 << level)
        digits = [power >> 64 * i & (WORD - 1) for i in reversed(range(1 << level))]
        place = 0
        while drawn == digits[place] and place + 1 < len(digits):
            drawn, place = word(entropy), place + 1
        won.append(drawn < digits[place])
    return won


def signs_and_digits(thresholds: list[int], s: int, entropy: Entropy) -> list[list[int]]:
    cells = [[0] * (1 + s) for _ in thresholds]
    left = [(row, column) for row in range(len(cells)) for column in range(1 + s)]
    while left:
        words = [word(entropy) for _ in range(-(-len(left) // 64))]
        tossed = [cell for i, cell in enumerate(left) if words[i // 64] >> i % 64 & 1]
        asked = [(thresholds[row], max(column - 1, 0)) for row, column in tossed]
        won = trials(asked, entropy)
        left = []
        for (row, column), success in zip(tossed, won, strict=True):
            cells[row][column] = int(success)
            if not success:
                left.append((row, column))
    return cells


def moved(
    thresholds: list[int], largest: int, pairs: list[tuple[int, int]], entropy: Entropy
) -> list[int]:
    """Move coordinates, each with its threshold and the last one of its dimension."""
    s, alpha = 0, Fraction(max(thresholds), WORD)
    while alpha ** (1 << s) >= Fraction(1, 2) and 1 << s < largest:
        s += 1
    cells = signs_and_digits(thresholds, s, entropy)
    sizes = [sum(bit << j for j, bit in enumerate(bits)) for _, *bits in cells]
    going = list(range(len(pairs)))
    while going:
        won = trials([(thresholds[c], s) for c in going], entropy)
        going = [c for c, success in zip(going, won, strict=True) if success]
        for c in going:
            sizes[c] += 1 << s
        if 1 << s >= largest:
            break
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
    drawn = moved([mechanism.threshold] * len(pairs), max(extents), pairs, entropy)
    reports = []
    for place in range(0, len(drawn), len(extents)):
        report = 0
        for m, y in zip(extents, drawn[place:], strict=False):
            report = report * m + y
        reports.append(report)
    return reports


def matrix_as_specified(mechanism: Matrix, values: list[int], entropy: Entropy) -> list[list[int]]:
    """Return the noisy rows of the reports of values."""
    rows = mechanism.rows
    kinds, low, high = rows.kinds.tolist(), rows.low.tolist(), rows.high.tolist()
    ends = list(zip(low, high, strict=True))
    columns = rows.entries.T.tolist()
    pairs = [
        (a - first, last - first)
        for value in values
        for a, (first, last) in zip(columns[value], ends, strict=True)
    ]
    thresholds = [rows.thresholds[kind] for kind in kinds] * len(values)
    largest = max(last - first for first, last in ends) + 1
    drawn = moved(thresholds, largest, pairs, entropy)
    width = len(kinds)
    cut = [drawn[i : i + width] for i in range(0, len(drawn), width)]
    return [[y + first for y, first in zip(row, low, strict=True)] for row in cut]
