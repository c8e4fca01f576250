"""What a mechanism costs: a device, the wire, the state, and the time of an answer."""

import time
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from ldpstream.mechanisms.interface.mechanism import Mechanism
from ldpstream.mechanisms.wire.frame import FINGERPRINT_BYTES, encode_frame

_SAMPLE_REPORTS: Final = 64
_REPETITIONS: Final = 5
_LONGEST_SECONDS: Final = 0.5
_COUNT_BYTES: Final = 8


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a mechanism costs: exact sizes on the wire and in state, and a measured time.

    `report_bits` is the information in a report, `report_bytes` its length, `message_bytes` the
    length of a message with one report, `statistic` the number of exact integers, and `state_bytes`
    their bytes in one pane of one partition. `decode_ms` is measured on this machine: the
    estimates of all single values from one statistic, the fastest of a few repetitions.
    """

    report_bits: int
    report_bytes: int
    message_bytes: int
    statistic: int
    state_bytes: int
    decode_ms: float

    @classmethod
    def of(cls, mechanism: Mechanism) -> Self:
        """Return a mechanism's cost."""
        report = np.zeros((1, mechanism.report_bytes), dtype=np.uint8)
        message = encode_frame(bytes(FINGERPRINT_BYTES), np.zeros(1, dtype=np.int64), report)
        return cls(
            report_bits=mechanism.report_bits,
            report_bytes=mechanism.report_bytes,
            message_bytes=len(message),
            statistic=mechanism.statistic_size,
            state_bytes=_COUNT_BYTES * mechanism.statistic_size,
            decode_ms=1e3 * _measure(mechanism),
        )


def _measure(mechanism: Mechanism) -> float:
    """Return the seconds that decoding all single values takes after a first run."""
    statistic = mechanism.empty()
    values = np.linspace(0, mechanism.size - 1, _SAMPLE_REPORTS).astype(np.int64)
    mechanism.accumulate(statistic, mechanism.privatize(values))
    decoder = mechanism.decoder
    decoder.totals(statistic)
    fastest, spent = np.inf, 0.0
    for _ in range(_REPETITIONS):
        started = time.perf_counter()
        decoder.totals(statistic)
        seconds = time.perf_counter() - started
        fastest, spent = min(fastest, seconds), spent + seconds
        if spent > _LONGEST_SECONDS:
            break
    return float(fastest)
