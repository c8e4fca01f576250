"""How the vectors draw what is in blocks (tests/vectors/README.md), in plain integers.

An implementation of its own, from the canonical parameters alone. First come all words u. What
follows goes by ascending size of the blocks, those of one value drawing nothing.

- `projective-geometry`: the numbers of z of all values with u < T; then, for the others, round by
  round, a number below K for each whose last one was orthogonal.
- `subset-selection`, in batches of 2^20/k values, k being the size: each value has k keys of 32
  bits, the lower half of a word before the upper one, rows one after another (a half may be left
  over). The own value gets the key 0 if u < T, else 2^32 - 1. The values with keys up to the d-th
  smallest are taken; where these are more than d, all keys of that row are drawn again, all such
  rows of the batch together.
- `tree` (not written out here): all words v come before this. Then, level by level, all values of
  that size and level draw together: numbers below the number of nodes less 1 for those with v >= T,
  or what `projective-geometry` draws.

`randomized-response` draws a number below k - 1 for every value, kept or not, and one below 1 in a
block of one value; its sizes need no order.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ldpstream.mechanisms.exact.entropy import Entropy

Member = tuple[int, int]
"""A value's index among those drawn together, and its place in its block."""


def words(entropy: Entropy, n: int) -> list[int]:
    return [int(entropy.words(1)[0]) for _ in range(n)]


def uniform_below(bounds: Sequence[int], entropy: Entropy) -> list[int]:
    masks = [(1 << (bound - 1).bit_length()) - 1 for bound in bounds]
    drawn = [word & mask for word, mask in zip(words(entropy, len(bounds)), masks, strict=True)]
    while left := [i for i, (u, bound) in enumerate(zip(drawn, bounds, strict=True)) if u >= bound]:
        for i, word in zip(left, words(entropy, len(left)), strict=True):
            drawn[i] = word & masks[i]
    return drawn


def of_size(parameters: Mapping[str, Any], key: str) -> dict[int, Any]:
    return {entry["size"]: entry for entry in parameters[key]}


def decisions(
    blocks: Sequence[int], sizes: Sequence[int], table: Mapping[int, Any], entropy: Entropy
) -> list[bool]:
    return [
        sizes[block] > 1 and u < int(table[sizes[block]]["threshold"], 16)
        for block, u in zip(blocks, words(entropy, len(blocks)), strict=True)
    ]


def randomized_response(
    parameters: Mapping[str, Any],
    sizes: Sequence[int],
    values: Sequence[tuple[int, int]],
    entropy: Entropy,
) -> list[int]:
    """Values are `(block, place)`."""
    own = decisions([b for b, _ in values], sizes, of_size(parameters, "thresholds"), entropy)
    others = uniform_below([max(sizes[block] - 1, 1) for block, _ in values], entropy)
    out = []
    for (block, place), keep, v in zip(values, own, others, strict=True):
        report = place if keep or sizes[block] == 1 else v + (v >= place)
        out.append(sum(sizes[:block]) + report)
    return out


def coordinates(point: int, q: int, t: int) -> list[int]:
    digits = []
    while point > 0:
        point, digit = divmod(point - 1, q)
        digits.insert(0, digit)
    return [0] * (t - 1 - len(digits)) + [1, *digits]


def number(vector: Sequence[int], q: int) -> int:
    after = vector[next(i for i, c in enumerate(vector) if c) + 1 :]
    return sum((c + 1) * q**e for e, c in enumerate(reversed(after)))


def product(x: Sequence[int], y: Sequence[int], q: int) -> int:
    return sum(a * b for a, b in zip(x, reversed(y), strict=True)) % q


def orthogonal_point(place: int, z: int, q: int, t: int) -> int:
    x, free = coordinates(place, q, t), coordinates(z, q, t - 1)
    p = t + 1 - (x.index(1) + 1)
    # Tried out: the one that makes it orthogonal.
    found = [[*free[: p - 1], c, *free[p - 1 :]] for c in range(q)]
    (vector,) = [y for y in found if product(x, y, q) == 0]
    return number(vector, q)


def projective_geometry(
    parameters: Mapping[str, Any],
    sizes: Sequence[int],
    values: Sequence[tuple[int, int]],
    entropy: Entropy,
) -> list[int]:
    table = of_size(parameters, "spaces")

    def points(size: int, t: int | None = None) -> int:
        q, full = table[size]["q"], table[size]["dimension"]
        return (q ** (full if t is None else t) - 1) // (q - 1)

    orders = [points(size) if size > 1 else 1 for size in sizes]
    wanted = decisions([b for b, _ in values], sizes, table, entropy)
    reports = [0] * len(values)

    def draw(size: int, members: list[Member]) -> None:
        q, t = table[size]["q"], table[size]["dimension"]
        inside = [(i, place) for i, place in members if wanted[i]]
        lower = uniform_below([points(size, t - 1)] * len(inside), entropy)
        for (i, place), z in zip(inside, lower, strict=True):
            reports[i] = orthogonal_point(place, z, q, t)
        left = [(i, place) for i, place in members if not wanted[i]]
        while left:
            drawn = uniform_below([points(size)] * len(left), entropy)
            for (i, _), y in zip(left, drawn, strict=True):
                reports[i] = y
            left = [
                (i, place)
                for i, place in left
                if product(coordinates(place, q, t), coordinates(reports[i], q, t), q) == 0
            ]

    by_size(sizes, values, draw)
    return [sum(orders[:b]) + y for (b, _), y in zip(values, reports, strict=True)]


def subset_selection(
    parameters: Mapping[str, Any],
    sizes: Sequence[int],
    values: Sequence[tuple[int, int]],
    entropy: Entropy,
) -> list[list[int]]:
    table = of_size(parameters, "subsets")
    wanted = decisions([b for b, _ in values], sizes, table, entropy)
    taken: list[list[int]] = [[0] for _ in values]

    def draw(size: int, members: list[Member]) -> None:
        step = 2**20 // size
        for first in range(0, len(members), step):
            left = members[first : first + step]
            while left:
                n = len(left) * size
                keys = [h for w in words(entropy, -(-n // 2)) for h in (w % 2**32, w >> 32)]
                for row, (i, place) in enumerate(left):
                    own = keys[row * size : (row + 1) * size]
                    own[place] = 0 if wanted[i] else 2**32 - 1
                    last = sorted(own)[table[size]["chosen"] - 1]
                    taken[i] = [p for p, key in enumerate(own) if key <= last]
                left = [m for m in left if len(taken[m[0]]) > table[size]["chosen"]]

    by_size(sizes, values, draw)
    block_bytes = -(-(len(sizes) - 1).bit_length() // 8)
    mask_bytes = -(-max(sizes) // 8)
    return [
        [*b.to_bytes(block_bytes, "little"), *sum(1 << p for p in s).to_bytes(mask_bytes, "little")]
        for (b, _), s in zip(values, taken, strict=True)
    ]


def by_size(
    sizes: Sequence[int],
    values: Sequence[tuple[int, int]],
    draw: Callable[[int, list[Member]], None],
) -> None:
    """Draw the values of blocks of several, by ascending size of the block."""
    for size in sorted({size for size in sizes if size > 1}):
        members = [(i, place) for i, (b, place) in enumerate(values) if sizes[b] == size]
        draw(size, members)


REFERENCES = {
    "randomized-response": randomized_response,
    "projective-geometry": projective_geometry,
    "subset-selection": subset_selection,
}
