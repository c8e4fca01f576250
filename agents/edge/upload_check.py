"""Check one body as a worker would, but without a clock and state.

Only the worker decides whether a report is late, or from the future.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ldpstream.agents.config import CollectionConfig
from ldpstream.mechanisms.base.errors import FrameError
from ldpstream.mechanisms.base.times import resemble_seconds
from ldpstream.mechanisms.interface.mechanism import Reports
from ldpstream.mechanisms.wire.frame import decode_frame, frame_fingerprint
from ldpstream.mechanisms.wire.one_report import Tokens


class UploadRefusedError(Exception):
    """An upload that is not accepted; its text never contains any part of a report."""

    def __init__(self, status: int, result: str, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.result = result
        """The metric label under which it is counted."""
        self.detail = detail


@dataclass(frozen=True, eq=False)
class ValidUpload:
    """An upload of n valid reports, `(n, ...)`, with cut times, int64 `(n,)`."""

    config: CollectionConfig
    """The collection, or the earlier one that it accepts."""
    reports: Reports
    times_ms: NDArray[np.int64]
    tokens: Tokens | None = None
    """All of one partition, if the collection has `one_report`."""

    @property
    def partition(self) -> int | None:
        """The partition that its tokens belong to."""
        rule = self.config.spec.one_report
        if rule is None or self.tokens is None:
            return None
        return int(rule.partition(self.tokens[:1])[0])


def check_upload(collections: Sequence[CollectionConfig], body: bytes) -> ValidUpload:
    """Read a frame of one of these specs, the collection's own first.

    Raises:
        UploadRefusedError: 400 or 409; nothing else, whatever the bytes.
    """
    try:
        config = _of_fingerprint(collections, frame_fingerprint(body))
        spec = config.spec
        frame = decode_frame(body, fingerprint=spec.fingerprint, report_bytes=spec.report_bytes)
    except FrameError as error:
        detail = "expected one frame of whole reports, as the clients make them"
        raise UploadRefusedError(400, "undecodable", detail) from error
    window, times_ms = config.window, frame.times_ms
    # Most uploads have one time, for which numbers take a fraction of what arrays do.
    times = times_ms.tolist()
    if min(times) < window.earliest_ms or max(times) > window.latest_ms:
        span = f"{window.earliest_ms} to {window.latest_ms}"
        raise UploadRefusedError(400, "time", f"expected times from {span} ms since 1970")
    if any(map(resemble_seconds, times)):
        detail = "expected times in milliseconds since 1970: these look like seconds"
        raise UploadRefusedError(400, "time", detail)
    if any(time_ms % spec.precision_ms for time_ms in times):
        detail = f"expected times cut to {spec.precision_ms} ms"
        raise UploadRefusedError(400, "precision", detail)
    rows, tokens = spec.split(frame.payload)
    reports, good = spec.mechanism.decode(rows)
    if not good.all():
        raise UploadRefusedError(400, "range", "expected reports that the mechanism can produce")
    if spec.one_report is not None and len(np.unique(spec.one_report.partition(tokens))) > 1:
        raise UploadRefusedError(400, "partition", "expected tokens of one partition")
    return ValidUpload(
        config=config,
        reports=reports,
        times_ms=np.repeat(times_ms, frame.counts),
        tokens=None if spec.one_report is None else tokens,
    )


def _of_fingerprint(
    collections: Sequence[CollectionConfig], fingerprint: bytes
) -> CollectionConfig:
    for collection in collections:
        if collection.spec.fingerprint == fingerprint:
            return collection
    expected = " or ".join(collection.spec.fingerprint.hex() for collection in collections)
    raise UploadRefusedError(409, "fingerprint", f"expected the fingerprint {expected}")
