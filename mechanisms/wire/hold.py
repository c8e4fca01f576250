"""`hold`: a device draws one permanent report for each epoch, from which its reports follow.

An epoch is `windows` consecutive windows. Each device has its own epochs, whose start follows from
its secret. The first value of an epoch is kept until its end, and the next epoch draws again. The
reports of any span therefore lose no more than one permanent draw for each epoch that it overlaps,
for every pair of histories (docs/theory.md, section 11). A permanent report for each distinct value
would bound nothing: a, b, a, b, ... against c, c, c, c, ... tells of every change. docs/wire.md
specifies the bytes.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.checks import check_keys, describe, is_whole
from ldpstream.mechanisms.base.errors import SpecError, within
from ldpstream.mechanisms.base.words import below, keyed_words
from ldpstream.mechanisms.channels.permanent_draw import MOST_COUNTED, most_periods, split_windows
from ldpstream.mechanisms.exact.dyadic import log_bounds
from ldpstream.mechanisms.exact.entropy import Entropy
from ldpstream.mechanisms.interface.chain import Chain
from ldpstream.mechanisms.interface.mechanism import Mechanism

MAX_HELD_WINDOWS: Final = 1_000_000
"""Most windows of an epoch."""
_ROUNDING: Final = 2.0**-50
_KEYS: Final = frozenset({"windows", "epsilon"})
_UNHELD: Final = {
    "lip": "with lip, whose calibration takes reports for independent",
    "sampled": "for a domain of attributes, of which every window draws one",
}


@dataclass(frozen=True)
class Hold:
    """Epochs of this many windows, and the mechanism that draws their permanent reports.

    `chain` is None if the permanent report itself is sent in every window.
    """

    windows: int
    permanent: Mechanism
    chain: Chain | None = field(compare=False)

    def canonical(self) -> dict[str, Json]:
        """Return the part of the canonical spec."""
        if self.chain is None:
            return {"windows": self.windows}
        return {
            "windows": self.windows,
            "permanent": dict(self.permanent.parameters()),
            "keep": list(self.chain.canonical()),
        }

    def epoch(
        self, secret: bytes, fingerprint: bytes, *, start_ms: int, window_ms: int
    ) -> tuple[int, int]:
        """Return this device's epoch `[start, end)` that holds the window starting at a time."""
        offset = epoch_offset(secret, fingerprint, self.windows)
        number = (start_ms // window_ms + offset) // self.windows
        first_ms = (number * self.windows - offset) * window_ms
        return first_ms, first_ms + self.windows * window_ms

    def sent(self, payload: NDArray[np.uint8], entropy: Entropy) -> NDArray[np.uint8]:
        """Return a window's report for a permanent one, both uint8 `(1, report_bytes)`."""
        if self.chain is None:
            return payload
        reports, _ = self.permanent.decode(payload)
        return self.permanent.encode(self.chain.again(reports, entropy))

    def worst_split(self, windows: int) -> dict[int, int]:
        """Return the split of `windows` >= 1 consecutive windows into epochs that loses most.

        The result maps a number of windows to the number of epochs that hold so many. Without a
        chain, the loss is largest if the windows overlap the most epochs. With one, the product of
        the epochs' ratios decides, over all places at which the first epoch may end. These need not
        exceed `MOST_COUNTED` windows, beyond which an epoch loses no more.
        """
        chain = self.chain
        if chain is None:
            return split_windows(windows, self.windows, 1)
        splits = [
            split_windows(windows, self.windows, first)
            for first in range(1, min(self.windows, windows, MOST_COUNTED) + 1)
        ]
        shared = min(split.get(self.windows, 0) for split in splits)

        def beyond_shared(split: Mapping[int, int]) -> Fraction:
            product = Fraction(1)
            for reports, times in split.items():
                times -= shared * (reports == self.windows)
                product *= _ratio(chain, reports) ** times
            return product

        return max(splits, key=beyond_shared)

    def loss(self, windows: int, *, steps: int = 1) -> tuple[float, float]:
        """Return floats `(low, high)` around `steps` times the log of `worst_split`'s product."""
        if self.chain is None:
            raise ValueError("expected reports that are randomised again")
        # Beyond MOST_COUNTED reports only an upper bound is known.
        losses = [
            (
                steps * times,
                (
                    log_bounds(_ratio(self.chain, min(reports, MOST_COUNTED)))[0],
                    log_bounds(_ratio(self.chain, reports))[1],
                ),
            )
            for reports, times in self.worst_split(windows).items()
        ]
        # fsum is exact, but the products of floats and integers are off in their last digits.
        low = math.fsum(times * ends[0] for times, ends in losses)
        high = math.fsum(times * ends[1] for times, ends in losses)
        return low * (1.0 - _ROUNDING), high * (1.0 + _ROUNDING)

    def epochs(self, windows: int) -> int:
        """Return the most epochs that any `windows` >= 1 consecutive windows overlap."""
        return most_periods(windows, self.windows)

    def disclosed(self) -> str:
        """Return what links the reports of an epoch to each other."""
        if self.chain is None:
            return (
                f"which reports of an epoch of {self.windows:,} windows may be one device's: they "
                "are the same one, which few others may have"
            )
        return (
            f"which reports of an epoch of {self.windows:,} windows may be one device's: they are "
            "drawn around one permanent report, and resemble it"
        )


@lru_cache(maxsize=4096)
def _ratio(chain: Chain, reports: int) -> Fraction:
    return chain.ratio(reports)


def epoch_offset(secret: bytes, fingerprint: bytes, windows: int) -> int:
    """Return by how many windows a device's epochs begin before multiples of their length.

    It is uniform in `0..windows-1`.

    >>> epoch_offset(bytes(32), bytes(8), 24)
    23
    """
    return below(keyed_words(secret, b"hold" + fingerprint), windows)


def read_hold(raw: object, path: str, mechanism: Mechanism) -> Hold | None:
    """Return the `hold` of a collection, or None if the key is absent."""
    if raw is None:
        return None
    key = f"{path}.hold"
    table = check_keys(raw if isinstance(raw, dict) else {"windows": raw}, _KEYS, key)
    windows = table.get("windows")
    if not is_whole(windows) or not 2 <= windows <= MAX_HELD_WINDOWS:
        raise SpecError(
            f"{key}.windows" if raw is table else key,
            f"a whole number of windows from 2 to {MAX_HELD_WINDOWS:,}, got {describe(windows)}",
        )
    if why := _UNHELD.get(mechanism.id):
        raise SpecError(key, f"no such key {why}")
    if "epsilon" not in table:
        return Hold(windows, mechanism, None)
    with within(path):
        return Hold(windows, *mechanism.chain(table["epsilon"]))
