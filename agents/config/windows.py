"""Windows that make sense: what several durations must be to each other."""

from typing import Final

from ldpstream.agents.config.errors import ConfigError
from ldpstream.agents.config.tables import CollectionTable
from ldpstream.agents.state.windows import WindowSpec
from ldpstream.mechanisms.times import format_duration

PANES_LIMIT: Final = 10_000


def window_spec(path: str, table: CollectionTable) -> WindowSpec:
    """Return the windows of the collection whose table is at `path`.

    Raises:
        ConfigError: where its durations contradict each other.
    """
    window = table.window
    size_ms = window.size
    hop_ms = size_ms if window.hop is None else window.hop
    if hop_ms > size_ms:
        raise _at_most(f"{path}.window.hop", "size", size_ms, hop_ms)
    spec = WindowSpec(
        size_ms=size_ms,
        hop_ms=hop_ms,
        grace_ms=window.grace,
        idle_ms=window.idle,
        future_ms=window.future,
        retention_ms=window.retention,
    )
    if size_ms // spec.pane_ms > PANES_LIMIT:
        raise ConfigError(
            f"{path}.window.hop",
            f"expected size and hop to cut a window in at most {PANES_LIMIT:,} panes, "
            f"got {size_ms // spec.pane_ms:,} panes of {format_duration(spec.pane_ms)}",
        )
    if 0 < window.grace < window.future:
        future_path = f"{path}.window.future"
        default = "" if "future" in window.model_fields_set else " (the default)"
        raise ConfigError(
            future_path,
            f"expected at most grace ({format_duration(window.grace)}), or grace = 0, "
            f"got {format_duration(window.future)}{default}",
        )
    if window.retention < size_ms:
        raise ConfigError(
            f"{path}.window.retention",
            f"expected at least size ({format_duration(size_ms)}), "
            f"got {format_duration(window.retention)}",
        )
    _check_precision(path, table.precision, spec.pane_ms)
    return spec


def _check_precision(path: str, precision_ms: int, pane_ms: int) -> None:
    if precision_ms > pane_ms:
        raise _at_most(f"{path}.precision", "a pane", pane_ms, precision_ms)
    if pane_ms % precision_ms:
        # A cut time would otherwise lie in the pane before the one in which the event happened.
        raise ConfigError(
            f"{path}.precision",
            f"expected a divisor of a pane ({format_duration(pane_ms)}), "
            f"got {format_duration(precision_ms)}",
        )


def _at_most(path: str, name: str, limit_ms: int, got_ms: int) -> ConfigError:
    return ConfigError(
        path,
        f"expected at most {name} ({format_duration(limit_ms)}), got {format_duration(got_ms)}",
    )
