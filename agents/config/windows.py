"""The windows of a collection, and in which of them devices take part.

Workers cannot observe `spread`: they trust the configuration about the devices' ledgers.
"""

from math import gcd
from typing import Final

from pydantic import BaseModel

from ldpstream.agents.config.durations import MINUTE_MS
from ldpstream.agents.config.errors import ConfigError
from ldpstream.agents.config.privacy.over_time import SpreadConfig
from ldpstream.agents.config.tables import CollectionTable, SpreadTable, WindowTable
from ldpstream.agents.state.calendar import DAY_MS, WEEK_MS, Calendar, offsets_divisor_ms
from ldpstream.agents.state.windows import WindowSpec
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.base.times import format_duration
from ldpstream.mechanisms.ledger.spread import MAX_SPREAD_WINDOWS
from ldpstream.mechanisms.policies.budgets import MAX_LISTED_VALUES
from ldpstream.mechanisms.wire.spec import CollectionSpec

_PANES_LIMIT: Final = 10_000


def window_spec(path: str, table: CollectionTable) -> WindowSpec:
    """Return the windows of the collection whose table is at `path`."""
    window = table.window
    size_ms = window.size
    hop_ms = size_ms if window.hop is None else window.hop
    if hop_ms > size_ms:
        most = _got(size_ms, window, "size")
        raise ConfigError(
            f"{path}.window.hop", f"expected at most size ({most}), got {format_duration(hop_ms)}"
        )
    calendar = _calendar(f"{path}.window", window, size_ms, hop_ms)
    grace_ms, future_ms = _grace_and_future(window, gcd(size_ms, hop_ms))
    spec = WindowSpec(
        size_ms=size_ms,
        hop_ms=hop_ms,
        grace_ms=grace_ms,
        idle_ms=window.idle,
        future_ms=future_ms,
        retention_ms=window.retention,
        witnesses=window.witnesses,
        calendar=calendar,
    )
    if size_ms // spec.pane_ms > _PANES_LIMIT:
        raise ConfigError(
            f"{path}.window.hop",
            f"expected size and hop to divide a window into at most {_PANES_LIMIT:,} panes, "
            f"got {size_ms // spec.pane_ms:,} panes of {format_duration(spec.pane_ms)}",
        )
    if future_ms > grace_ms:
        raise ConfigError(
            f"{path}.window.future",
            f"expected at most grace ({format_duration(grace_ms)}), "
            f"got {format_duration(future_ms)}",
        )
    if window.retention < size_ms:
        raise ConfigError(
            f"{path}.window.retention",
            f"expected at least size ({_got(size_ms, window, 'size')}), "
            f"got {_got(window.retention, window, 'retention')}",
        )
    _check_precision(path, table, spec)
    return spec


def check_devices(path: str, window: WindowSpec, spec: CollectionSpec, *, spread: bool) -> None:
    """Refuse a calendar where devices must know which window a report belongs to."""
    rules = {
        "one_report": spec.one_report is not None,
        "hold": spec.hold is not None,
        "spread": spread,
        "domain.words": spec.words is not None,
    }
    rule = next((name for name, used in rules.items() if used), None)
    if window.calendar is None or rule is None:
        return
    raise ConfigError(
        f"{path}.window.{'week_start' if window.calendar.timezone == 'UTC' else 'timezone'}",
        f"expected none with {rule}: devices find a report's window without knowing time zones, "
        "by the windows' length from 1970-01-01T00:00:00Z on",
    )


def read_spread(
    path: str, table: SpreadTable | None, window: WindowSpec, spec: CollectionSpec
) -> SpreadConfig | None:
    """Return a collection's spread; None where it has none."""
    if table is None:
        return None
    if spec.hold is not None:
        raise ConfigError(
            path,
            "expected no spread with hold: all reports of an epoch cost no more than one, so "
            "devices report in every window",
        )
    if spec.mechanism.policy.size > MAX_LISTED_VALUES:
        # Slow; budgets over fewer values always add up.
        try:
            spec.mechanism.policy.largest_loss()
        except SpecError as error:
            raise ConfigError(
                path, f"expected no spread: {error.path}: {error.expected}"
            ) from error
    pane = format_duration(window.pane_ms)
    if table.horizon % window.pane_ms:
        got = format_duration(table.horizon)
        raise ConfigError(f"{path}.horizon", f"expected a multiple of a pane ({pane}), got {got}")
    windows = table.horizon // window.pane_ms
    if windows > MAX_SPREAD_WINDOWS:
        most = f"at most {MAX_SPREAD_WINDOWS:,} panes"
        raise ConfigError(f"{path}.horizon", f"expected {most} of {pane}, got {windows:,}")
    if table.reports > windows:
        most = f"at most the {windows:,} panes of horizon"
        raise ConfigError(f"{path}.reports", f"expected {most}, got {table.reports:,}")
    return SpreadConfig(table.reports, windows, table.horizon, table.rolling)


def _got(duration_ms: int, table: BaseModel, key: str) -> str:
    """Return a setting's value as text; if it is the default, say so and which key to set."""
    text = format_duration(duration_ms)
    return text if key in table.model_fields_set else f"{text}, the default: write {key} too"


def _calendar(path: str, window: WindowTable, size_ms: int, hop_ms: int) -> Calendar | None:
    """Return the calendar; None where windows count from the epoch, in UTC."""
    whole = gcd(size_ms, hop_ms) % DAY_MS == 0
    if window.timezone != "UTC" and not whole:
        key = "size" if size_ms % DAY_MS else "hop"
        got = _got(size_ms, window, "size") if key == "size" else format_duration(hop_ms)
        raise ConfigError(
            f"{path}.{key}",
            f'expected whole days, such as "1d" or "7d", because of timezone, got {got}',
        )
    weekly = hop_ms % WEEK_MS == 0
    if window.week_start is not None and not weekly:
        raise ConfigError(
            f"{path}.week_start",
            f'expected none, or windows that start every week (hop = "7d"), '
            f"got one every {format_duration(hop_ms)}",
        )
    week_start = window.week_start
    if weekly and week_start is None and window.timezone != "UTC":
        week_start = "monday"
    calendar = Calendar(window.timezone, week_start)
    return None if calendar.timezone == "UTC" and not calendar.first_day else calendar


def _grace_and_future(window: WindowTable, pane_ms: int) -> tuple[int, int]:
    """Return both in milliseconds; if only one is configured, the other equals it."""
    grace_ms, future_ms = window.grace, window.future
    if grace_ms is None:
        grace_ms = min(MINUTE_MS, pane_ms) if future_ms is None else future_ms
    return grace_ms, grace_ms if future_ms is None else future_ms


def _check_precision(path: str, table: CollectionTable, window: WindowSpec) -> None:
    pane_ms = window.pane_ms
    precision_ms, got = table.precision, _got(table.precision, table, "precision")
    if precision_ms > pane_ms:
        raise ConfigError(
            f"{path}.precision", f"expected at most a pane ({format_duration(pane_ms)}), got {got}"
        )
    if pane_ms % precision_ms:
        # Otherwise cutting a time could move it to the pane before the event's.
        raise ConfigError(
            f"{path}.precision",
            f"expected a divisor of a pane ({format_duration(pane_ms)}), got {got}",
        )
    zone = "UTC" if window.calendar is None else window.calendar.timezone
    if offsets_divisor_ms(zone) % precision_ms:
        most = format_duration(offsets_divisor_ms(zone))
        raise ConfigError(
            f"{path}.precision",
            f"expected a divisor of {most}, with which the days of {zone} begin, got {got}",
        )
