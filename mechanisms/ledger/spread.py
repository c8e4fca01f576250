"""Which windows a ledger takes part in, when it spreads its budget over a period.

A ledger that spends at once takes part in the first windows of a period and in none of the others,
which are left to devices that start later, so its owner is counted at one time of day only. One
that spreads takes part in w of the W windows of a period, drawn from the device's secret alone:
each window is as likely as any other, and the choice tells nothing of any value.

`fresh` draws another set for each period: at most w reports in a period, and so at most 2 w in W
windows that lie across two. `rolling` has one set for all periods, by the window's place in its
period: at most w in any W windows in a row, but the same devices meet in every period.

The draw is Floyd's (Bentley and Floyd 1987), its words HMAC-SHA-256 under the secret: docs/wire.md
has the bytes, tests/vectors/spread.json examples.
"""

import hmac
from collections.abc import Callable, Mapping
from itertools import count
from typing import Final, Literal

Spread = Literal["fresh", "rolling"]

MAX_SPREAD_WINDOWS: Final = 1_000_000
"""Most windows of a period that a budget is spread over."""
_WORD_BYTES: Final = 8


def drawn_windows(
    secret: bytes, fingerprint: bytes, start_ms: int | None, *, windows: int, reports: int
) -> frozenset[int]:
    """Return the numbers of the windows drawn, exactly `reports` of `0..windows-1`.

    `start_ms` is the start of the period, None for the one set that rolls on.

    >>> sorted(drawn_windows(bytes(32), bytes(8), 0, windows=24, reports=4))
    [3, 11, 15, 19]
    """
    message = (
        b"rolling" + fingerprint
        if start_ms is None
        else b"spread" + fingerprint + start_ms.to_bytes(8, "little", signed=True)
    )
    numbers = count()

    def word() -> int:
        number = next(numbers).to_bytes(8, "little")
        return int.from_bytes(
            hmac.digest(secret, message + number, "sha256")[:_WORD_BYTES], "little"
        )

    return draw_subset(lambda bound: _below(word, bound), windows=windows, reports=reports)


def draw_subset(below: Callable[[int], int], *, windows: int, reports: int) -> frozenset[int]:
    """Return a subset of `0..windows-1`, each of `reports` numbers equally likely.

    `below(bound)` gives uniform numbers in `0..bound-1`.
    """
    chosen: set[int] = set()
    for last in range(windows - reports, windows):
        number = below(last + 1)
        chosen.add(last if number in chosen else number)
    return frozenset(chosen)


def _below(word: Callable[[], int], bound: int) -> int:
    """Return a uniform number below a bound: the lowest bits of a word, drawn until they fit."""
    mask = (1 << (bound - 1).bit_length()) - 1
    while (number := word() & mask) >= bound:
        pass
    return number


def shared_out(
    windows_ms: Mapping[bytes, int], horizon_ms: int, fits: Callable[[Mapping[bytes, int]], bool]
) -> dict[bytes, int] | None:
    """Return in how many windows of a period each collection takes part, at least one; else None.

    All take part in the same share of their windows, the largest that fits the budget, rounded down
    to whole windows, counting those that start within the period, or one if none does.
    """

    def reports(stretch_ms: int) -> dict[bytes, int]:
        return {key: max(1, stretch_ms // window) for key, window in windows_ms.items()}

    if not fits(reports(0)):
        return None
    least, most = 0, horizon_ms
    while least < most:
        middle = (least + most + 1) // 2
        if fits(reports(middle)):
            least = middle
        else:
            most = middle - 1
    return reports(least)
