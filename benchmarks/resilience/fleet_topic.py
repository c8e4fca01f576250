"""What a fleet leaves: the reports on its topic, identified by tokens, and its finals."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray
from tests.lab import Lab
from tests.processes import Worker

from benchmarks.resilience.fleet_devices import SIZE
from ldpstream.mechanisms.wire.frame import decode_frame
from ldpstream.mechanisms.wire.one_report import token_numbers

Floats = NDArray[np.float64]

PATIENCE_SECONDS: Final = 1_800.0


@dataclass(frozen=True)
class Topic:
    """Contents of the source: `there` says of which device and window there is a report.

    It is bool `(devices, windows)`. `strangers` counts tokens that belong to no device,
    `different` windows in which a device has several reports that differ.
    """

    there: NDArray[np.bool_]
    messages: int
    copies: int
    strangers: int
    different: int

    @classmethod
    def read(cls, lab: Lab, tokens: NDArray[np.uint64]) -> Self:
        """Read all of it; `tokens` are those of all devices and windows."""
        spec, messages = lab.collection.spec, 0
        payloads: dict[int, set[bytes]] = {}
        for record in asyncio.run(lab.records(lab.collection.topics.source)):
            frame = decode_frame(
                record.value or b"", fingerprint=spec.fingerprint, report_bytes=spec.report_bytes
            )
            rows, own = spec.split(frame.payload)
            messages += len(rows)
            for row, token in zip(rows, token_numbers(own).tolist(), strict=True):
                payloads.setdefault(token, set()).add(row.tobytes())
        return cls(
            there=np.isin(tokens, np.array(list(payloads), dtype=np.uint64)),
            messages=messages,
            copies=messages - sum(len(one) for one in payloads.values()),
            strangers=len(payloads.keys() - set(tokens.ravel().tolist())),
            different=sum(len(one) > 1 for one in payloads.values()),
        )


def shares_of(values: NDArray[np.int64]) -> Floats:
    """Return the share of each value, `(k,)`."""
    return np.bincount(values, minlength=SIZE) / values.size


def bounds(document: dict[str, Any]) -> tuple[Floats, Floats]:
    """Return the bounds of all values in their order, `(k,)` both."""
    entries = sorted(document["distribution"], key=lambda one: int(one["value"]))
    low, high = (np.array([one[end] for one in entries]) for end in ("low", "high"))
    return low, high


def wait_for_finals(lab: Lab, worker: Worker, starts: Sequence[int]) -> list[dict[str, Any]]:
    """Return the published finals of all windows."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    found = asyncio.run(lab.finals())
    while not found.keys() >= set(starts):
        if time.monotonic() > deadline or worker.process.poll() is not None:
            missing = len(set(starts) - found.keys())
            raise TimeoutError(f"{missing} windows have no final: {worker.process.poll()}")
        time.sleep(0.5)
        found = asyncio.run(lab.finals())
    return [found[start][0] for start in starts]
