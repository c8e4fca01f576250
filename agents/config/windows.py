"""Check that the durations of a window fit together."""

from math import gcd
from typing import Final

from pydantic import BaseModel

from ldpstream.agents.config.durations import MINUTE_MS
from ldpstream.agents.config.errors import ConfigError
from ldpstream.agents.config.tables import CollectionTable, WindowTable
from ldpstream.agents.state.windows import WindowSpec
from ldpstream.mechanisms.base.times import format_duration

_PANES_LIMIT: Final = 10_000


def window_spec(path: str, table: CollectionTable) -> WindowSpec:
    """Return the windows of the collection whose table is at `path`.

    Raises:
        ConfigError: if its durations contradict each other.
    """
    window = table.window
    size_ms = window.size
    hop_ms = size_ms if window.hop is None else window.hop
    if hop_ms > size_ms:
        most = _got(size_ms, window, "size")
        raise ConfigError(
            f"{path}.window.hop", f"expected at most size ({most}), got {format_duration(hop_ms)}"
        )
    grace_ms, future_ms = _grace_and_future(window, gcd(size_ms, hop_ms))
    spec = WindowSpec(
        size_ms=size_ms,
        hop_ms=hop_ms,
        grace_ms=grace_ms,
        idle_ms=window.idle,
        future_ms=future_ms,
        retention_ms=window.retention,
        witnesses=window.witnesses,
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
    _check_precision(path, table, spec.pane_ms)
    return spec


def _got(duration_ms: int, table: BaseModel, key: str) -> str:
    """Return a setting's value as text; if it is the default, say so and which key to set."""
    said = format_duration(duration_ms)
    return said if key in table.model_fields_set else f"{said}, the default: write {key} too"


def _grace_and_future(window: WindowTable, pane_ms: int) -> tuple[int, int]:
    """Return both in milliseconds; if only one is configured, the other equals it."""
    grace_ms, future_ms = window.grace, window.future
    if grace_ms is None:
        grace_ms = min(MINUTE_MS, pane_ms) if future_ms is None else future_ms
    return grace_ms, grace_ms if future_ms is None else future_ms


def _check_precision(path: str, table: CollectionTable, pane_ms: int) -> None:
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
