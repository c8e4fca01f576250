"""How value lines are read: columns, plausible times, and what happens to bad lines."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldpstream.agents.broker.record_time import now_ms
from ldpstream.agents.cli.terminal.errors import Refused
from ldpstream.agents.cli.terminal.options import ReadingOptions
from ldpstream.agents.config import CollectionConfig, WindowSpec
from ldpstream.mechanisms.base.times import format_duration, resemble_seconds
from ldpstream.mechanisms.domains.fitting import has_ends

_DAY_MS: Final = 86_400_000
_BACK_MS: Final = 365 * _DAY_MS
_AHEAD_MS: Final = _DAY_MS  # a time without its zone is off by at most 14 hours


@dataclass(frozen=True)
class NearNow:
    """The times that are plausible: from `back_ms` before now to `ahead_ms` after it."""

    back_ms: int
    ahead_ms: int

    def far(self, times_ms: NDArray[np.int64]) -> dict[int, str]:
        """Return which of n times, `(n,)`, are implausible, and what is expected instead."""
        now = now_ms()
        far = np.flatnonzero((times_ms < now - self.back_ms) | (times_ms > now + self.ahead_ms))
        return {int(position): self._expected(int(times_ms[position]), now) for position in far}

    def _expected(self, time_ms: int, now: int) -> str:
        span = f"of the {format_duration(self.back_ms)} before now"
        if time_ms > now:
            span = f"at most {format_duration(self.ahead_ms)} after now"
        looks = " (this looks like seconds)" * resemble_seconds(time_ms)
        return f"a time {span}, in milliseconds since 1970 or RFC 3339{looks}; --replay takes any"


def near_now(window: WindowSpec, *, replay: bool) -> NearNow | None:
    """Return which times a collection's lines may have; None, for any, in a replay.

    A year back, or the retention if that is longer; a day ahead, or `future` if that is longer.
    """
    if replay:
        return None
    return NearNow(max(_BACK_MS, window.retention_ms), max(_AHEAD_MS, window.future_ms))


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How value lines are read.

    `times`: the first column is a time, within `near`. `columns` are named by the first line;
    without them, the first line is a value, too.
    """

    times: bool = False
    near: NearNow | None = None
    columns: tuple[str, ...] = ()
    clamp: bool = False
    skip_bad: bool = False

    @classmethod
    def of(
        cls, collection: CollectionConfig, options: ReadingOptions, *, reports: bool = False
    ) -> "Reading":
        """Return how to read value lines, or lines of `reports`, under these options."""
        if options.replay and not (options.times or reports):
            raise Refused(
                "--replay: expected --times with it: without times, reports are dated now"
            )
        columns, domain = options.columns, collection.spec.domain
        if columns is not None and domain.column_names:
            raise Refused(
                f"--columns: expected none, because {collection.name} has records: their first "
                f"line names the columns, {', '.join(domain.column_names)}"
            )
        if reports and (columns is not None or options.clamp or options.skip_bad):
            what = "no --columns, --clamp or --skip-bad, which are for values"
            raise Refused(f"--reports: expected {what}")
        names = () if columns is None else tuple(name.strip() for name in columns.split(","))
        if columns is not None and (not all(names) or len(set(names)) < len(names)):
            raise Refused("--columns: expected names separated by commas, each once")
        if domain.column_names:
            names = (*(["time"] if options.times else []), *domain.column_names)
        if options.clamp and not has_ends(domain):
            raise Refused(
                f"--clamp: expected a collection with only numbers, which {collection.name} is not"
            )
        return cls(
            times=options.times,
            near=near_now(collection.window, replay=options.replay),
            columns=names,
            clamp=options.clamp,
            skip_bad=options.skip_bad,
        )
