"""The windows in which a ledger takes part if it spreads its budget over a period.

Without spreading, a ledger takes part only in the first windows of a period, so that its owner is
counted at one time of day. With spreading, it takes part in w of the W windows of a period. They
are drawn from the device's secret alone: all windows are equally likely, and the choice reveals
nothing about any value.

`fresh` draws another set for each period: at most w reports in a period, and hence at most 2 w in W
consecutive windows. `rolling` draws one set for all periods, by the window's place in its period:
at most w in any W consecutive windows, but the same devices share windows in every period.

The draw is Floyd's (Bentley and Floyd 1987) on words of HMAC-SHA-256 under the secret. docs/wire.md
specifies the bytes, and tests/vectors/spread.json holds examples.
"""

from collections.abc import Callable, Mapping
from typing import Final, Literal

from ldpstream.mechanisms.base.words import below, keyed_words

Spread = Literal["fresh", "rolling"]

MAX_SPREAD_WINDOWS: Final = 1_000_000
"""Most windows of a period over which a budget is spread."""


def drawn_windows(
    secret: bytes, fingerprint: bytes, start_ms: int | None, *, windows: int, reports: int
) -> frozenset[int]:
    """Return the numbers of the drawn windows, exactly `reports` of `0..windows-1`.

    `start_ms` is the start of the period, or None for one set for all periods.

    >>> sorted(drawn_windows(bytes(32), bytes(8), 0, windows=24, reports=4))
    [3, 11, 15, 19]
    """
    message = (
        b"rolling" + fingerprint
        if start_ms is None
        else b"spread" + fingerprint + start_ms.to_bytes(8, "little", signed=True)
    )
    words = keyed_words(secret, message)
    return draw_subset(lambda bound: below(words, bound), windows=windows, reports=reports)


def draw_subset(below: Callable[[int], int], *, windows: int, reports: int) -> frozenset[int]:
    """Return a uniformly drawn subset of `reports` numbers out of `0..windows-1`.

    `below(bound)` returns uniform numbers in `0..bound-1`.
    """
    chosen: set[int] = set()
    for last in range(windows - reports, windows):
        number = below(last + 1)
        chosen.add(last if number in chosen else number)
    return frozenset(chosen)


def shared_out(
    windows_ms: Mapping[bytes, int], horizon_ms: int, fits: Callable[[Mapping[bytes, int]], bool]
) -> dict[bytes, int] | None:
    """Return in how many windows of a period each collection takes part, at least one, or None.

    All collections take part in the same fraction of their windows, the largest that fits the
    budget, rounded down to whole windows. None if one window each does not fit.
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
