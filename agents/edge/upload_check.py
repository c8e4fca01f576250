"""Check the head of one body as a worker would, but without a clock and state.

Only the worker decides whether a report is late, or from the future.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ldpstream.agents.config import CollectionConfig
from ldpstream.mechanisms.base.errors import FrameError
from ldpstream.mechanisms.base.times import resemble_seconds
from ldpstream.mechanisms.wire.frame import frame_fingerprint, frame_runs


class UploadRefusedError(Exception):
    """An upload that is not accepted; its text never contains any part of a report."""

    def __init__(self, status: int, result: str, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.result = result
        """The metric label under which it is counted."""
        self.detail = detail


@dataclass(frozen=True)
class UploadHead:
    """What an upload says beside its reports: a cut time and a number of reports for each run."""

    config: CollectionConfig
    """The collection, or the earlier one that it accepts."""
    times_ms: Sequence[int]
    counts: Sequence[int]
    start: int
    """Where in the body the reports begin."""


def check_head(collections: Sequence[CollectionConfig], body: bytes) -> UploadHead:
    """Read the head of a frame of one of these specs, the collection's own first.

    Raises:
        UploadRefusedError: 400 or 409; nothing else, whatever the bytes.
    """
    try:
        config = _of_fingerprint(collections, frame_fingerprint(body))
        spec = config.spec
        times_ms, counts, start = frame_runs(body, report_bytes=spec.report_bytes)
    except FrameError as error:
        detail = "expected one frame of whole reports, as the clients make them"
        raise UploadRefusedError(400, "undecodable", detail) from error
    window = config.window
    if min(times_ms) < window.earliest_ms or max(times_ms) > window.latest_ms:
        span = f"{window.earliest_ms} to {window.latest_ms}"
        raise UploadRefusedError(400, "time", f"expected times from {span} ms since 1970")
    if any(map(resemble_seconds, times_ms)):
        detail = "expected times in milliseconds since 1970: these look like seconds"
        raise UploadRefusedError(400, "time", detail)
    if any(time_ms % spec.precision_ms for time_ms in times_ms):
        detail = f"expected times cut to {spec.precision_ms} ms"
        raise UploadRefusedError(400, "precision", detail)
    return UploadHead(config, times_ms, counts, start)


def _of_fingerprint(
    collections: Sequence[CollectionConfig], fingerprint: bytes
) -> CollectionConfig:
    for collection in collections:
        if collection.spec.fingerprint == fingerprint:
            return collection
    expected = " or ".join(collection.spec.fingerprint.hex() for collection in collections)
    raise UploadRefusedError(409, "fingerprint", f"expected the fingerprint {expected}")
