"""What a mechanism costs: a device, the wire, and the state."""

from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from ldpstream.mechanisms.interface.mechanism import Mechanism
from ldpstream.mechanisms.wire.frame import FINGERPRINT_BYTES, encode_frame

_COUNT_BYTES: Final = 8


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a mechanism costs: exact sizes on the wire and in state.

    `report_bits` is the information in a report, `report_bytes` its length, `message_bytes` the
    length of a message with one report, `statistic` the number of exact integers, and `state_bytes`
    their bytes in one pane of one partition.
    """

    report_bits: int
    report_bytes: int
    message_bytes: int
    statistic: int
    state_bytes: int

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
        )
