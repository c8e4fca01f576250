"""`one_report`: one report for each device and window, enforced by tokens.

Each report carries a token: the first 8 bytes of HMAC-SHA-256, under a secret that never leaves the
device, of the spec's fingerprint and the start of the report's window. A device has one token in
each window of each collection, and without the secret nobody can link two of them. The token also
determines the partition of its report, so that the owner of a partition sees all reports with the
same token. docs/wire.md specifies the bytes; docs/how-to/devices.md says what the rule does and
does not do.
"""

import hmac
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.checks import describe, is_whole
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.base.times import parse_duration

TOKEN_BYTES: Final = 8
SECRET_BYTES: Final = 32
"""Number of random bytes that a device draws for its secret; at least half as many are required."""
DEFAULT_PARTITIONS: Final = 4
_DEFAULT_WINDOW: Final = "1h"
DISCLOSED: Final = ("a token: which reports of one window are one device's",)
"""What the rule adds to what is sent in the clear."""
_PARTITION_BYTES: Final = 4
_TIME_BYTES: Final = 8

Tokens = NDArray[np.uint8]


@dataclass(frozen=True)
class OneReport:
    """The rule of a collection: the length of its windows, and the partitions of its topic."""

    window_ms: int
    partitions: int

    def canonical(self) -> dict[str, Json]:
        """Return the part of the canonical spec."""
        return {"window_ms": self.window_ms, "partitions": self.partitions}

    def tokens(self, secret: bytes, fingerprint: bytes, times_ms: NDArray[np.int64]) -> Tokens:
        """Return a device's tokens, uint8 `(n, 8)`, for windows of n cut times, int64 `(n,)`."""
        if len(secret) < SECRET_BYTES // 2:
            raise ValueError(f"expected a secret of at least {SECRET_BYTES // 2} bytes")
        starts_ms, place = np.unique(times_ms - times_ms % self.window_ms, return_inverse=True)
        digests = [
            hmac.digest(
                secret,
                fingerprint + start_ms.to_bytes(_TIME_BYTES, "little", signed=True),
                "sha256",
            )[:TOKEN_BYTES]
            for start_ms in starts_ms.tolist()
        ]
        return np.frombuffer(b"".join(digests), np.uint8).reshape(-1, TOKEN_BYTES)[place]

    def partition(self, tokens: Tokens) -> NDArray[np.int64]:
        """Return the partitions, int64 `(n,)`, of reports with these tokens, uint8 `(n, 8)`."""
        first = np.ascontiguousarray(tokens[:, :_PARTITION_BYTES]).view("<u4")[:, 0]
        return first.astype(np.int64) % self.partitions

    def by_partition(self, tokens: Tokens) -> Iterator[NDArray[np.int64]]:
        """Yield, for each partition with tokens, the places of its tokens."""
        partition = self.partition(tokens)
        for number in np.unique(partition):
            yield np.flatnonzero(partition == number)

    def check(self, tokens: Tokens | None, n: int | None) -> Tokens:
        """Return the tokens of a frame after checking them; n is the number of reports, if known.

        Raises:
            ValueError: if there is not one token for each report, or they have several partitions.
        """
        if tokens is None or tokens.dtype != np.uint8 or (n is not None and len(tokens) != n):
            raise ValueError("expected one token of 8 bytes for each report, because of one_report")
        if tokens.ndim != 2 or tokens.shape[1] != TOKEN_BYTES:
            raise ValueError("expected tokens of 8 bytes")
        if len(np.unique(self.partition(tokens))) > 1:
            raise ValueError("expected tokens of one partition in a frame")
        return tokens

    def frame_partition(self, frame: bytes) -> int:
        """Return the partition of a frame, whose last bytes are a token."""
        last = np.frombuffer(frame[-TOKEN_BYTES:], np.uint8).reshape(1, TOKEN_BYTES)
        return int(self.partition(last)[0])


def token_numbers(tokens: Tokens) -> NDArray[np.uint64]:
    """Return tokens, uint8 `(n, 8)`, as big-endian numbers, uint64 `(n,)`."""
    return np.ascontiguousarray(tokens).view(">u8")[:, 0].astype(np.uint64)


def read_one_report(mapping: Mapping[str, object], path: str) -> OneReport | None:
    """Return the rule of a collection's table; None if `one_report` is absent or false."""
    raw = mapping.get("one_report", False)
    if not isinstance(raw, bool):
        raise SpecError(f"{path}.one_report", f"true or false, got {describe(raw)}")
    if not raw:
        return None
    partitions = mapping.get("partitions", DEFAULT_PARTITIONS)
    if not is_whole(partitions) or partitions < 1:
        what = f"a whole number above 0, got {describe(partitions)}"
        raise SpecError(f"{path}.partitions", what)
    window = mapping.get("window", {})
    if not isinstance(window, dict):
        raise SpecError(f"{path}.window", f"a table, got {describe(window)}")
    size_ms = _read_length(window.get("size", _DEFAULT_WINDOW), f"{path}.window.size")
    if _read_length(window.get("hop", f"{size_ms}ms"), f"{path}.window.hop") != size_ms:
        what = "size, because of one_report: windows that overlap have no report to themselves"
        raise SpecError(f"{path}.window.hop", what)
    return OneReport(window_ms=size_ms, partitions=partitions)


def _read_length(raw: object, path: str) -> int:
    try:
        length_ms = parse_duration(raw) if isinstance(raw, str) else 0
    except ValueError:
        length_ms = 0
    if length_ms < 1:
        raise SpecError(path, f'a duration above 0 such as "1h" or "1d", got {describe(raw)}')
    return length_ms
