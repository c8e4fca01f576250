"""The outcome of every report by plain definitions, one report at a time."""

from typing import NamedTuple

from ldpstream.agents.state.context import Context
from ldpstream.agents.state.windows import NEVER
from ldpstream.mechanisms.base.errors import FrameError
from ldpstream.mechanisms.wire.frame import decode_frame, frame_fingerprint


class Outcome(NamedTuple):
    """What became of a report, or (time and symbol None) of an unreadable message."""

    offset: int
    outcome: str
    time_ms: int | None
    symbol: int | None


class Oracle:
    """A partition's watermark, and the outcomes that follow from it."""

    def __init__(self, context: Context) -> None:
        self.context, self.clock, self.outcomes = context, NEVER, []
        self.reached = []
        self.accept = {spec.fingerprint for spec in context.accept}

    def message(self, offset: int, value: bytes | None, now_ms: int, clock_ms: int | None = None):
        """Take a message that arrived at `now_ms`; it moves the clock to `clock_ms` at most.

        Without `clock_ms`, the bound is `now_ms`.
        """
        spec = self.context.spec
        width = spec.mechanism.report_bytes
        try:
            frame = decode_frame(value or b"", fingerprint=spec.fingerprint, report_bytes=width)
        except FrameError as error:
            if error.reason == "undecodable" or frame_fingerprint(value) not in self.accept:
                self.outcomes.append(Outcome(offset, error.reason, None, None))
            return
        times_ms = frame.times_ms.repeat(frame.counts).tolist()
        rows = [row.tobytes() for row in frame.payload]
        moved = []
        for time_ms, row in sorted(zip(times_ms, rows, strict=True), key=lambda r: r[0]):
            symbol = int.from_bytes(row, "little")
            outcome = self.outcome(time_ms, symbol, now_ms)
            self.outcomes.append(Outcome(offset, outcome, time_ms, symbol))
            if outcome == "counted":
                moved.append(min(time_ms, now_ms if clock_ms is None else clock_ms))
                if self.context.window.witnesses == 1:
                    self.clock = max(self.clock, *moved)
        self.reached += [max(moved)] if moved else []
        if len(self.reached) >= self.context.window.witnesses:
            self.clock = max(self.clock, sorted(self.reached)[-self.context.window.witnesses])

    def outcome(self, time_ms: int, symbol: int, now_ms: int) -> str:
        window, spec = self.context.window, self.context.spec
        if not window.earliest_ms <= time_ms <= window.latest_ms:
            return "time"
        if time_ms % spec.precision_ms:
            return "precision"
        if time_ms > now_ms + window.future_ms:
            return "future"
        if symbol >= spec.mechanism.outputs:
            return "range"
        end_ms = (time_ms // window.pane_ms + 1) * window.pane_ms
        return "late" if end_ms + window.grace_ms <= self.clock else "counted"
