"""`spread`: read from the configuration, and how estimates account for it.

Workers cannot observe it: they trust the configuration about the devices' ledgers.
"""

from ldpstream.agents.config.errors import ConfigError
from ldpstream.agents.config.tables import SpreadTable
from ldpstream.agents.privacy.over_time import SpreadConfig
from ldpstream.agents.state.windows import WindowSpec
from ldpstream.estimators.bounds.options import ONE_REPORT_EACH, Sampling, sampling_of
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.base.times import format_duration
from ldpstream.mechanisms.ledger.spread import MAX_SPREAD_WINDOWS
from ldpstream.mechanisms.policies.composition import largest_loss
from ldpstream.mechanisms.policies.matrix import MAX_MATRIX_VALUES
from ldpstream.mechanisms.wire.spec import CollectionSpec


def read_spread(
    path: str, table: SpreadTable | None, window: WindowSpec, spec: CollectionSpec
) -> SpreadConfig | None:
    """Return a collection's spread; None where it has none.

    Raises:
        ConfigError: where the horizon is not a multiple of a pane, has too many or fewer than
            `reports`; for policies whose budgets a ledger cannot add up.
    """
    if table is None:
        return None
    if spec.hold is not None:
        raise ConfigError(
            path,
            "expected no spread with hold: all reports of an epoch cost no more than one, so "
            "devices report in every window",
        )
    if spec.mechanism.policy.size > MAX_MATRIX_VALUES:
        # Slow; budgets over fewer values always add up.
        try:
            largest_loss(spec.mechanism.policy)
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


def sampling_between(
    spread: SpreadConfig | None,
    window: WindowSpec,
    start_ms: int,
    end_ms: int,
    *,
    held: int = 1,
    part: float = 1.0,
) -> Sampling:
    """Return how devices' reports in a span of whole panes are drawn; one each if it is empty.

    `held` and `part`: as in `sampling_of`.
    """
    first, panes = start_ms // window.pane_ms, (end_ms - start_ms) // window.pane_ms
    if panes < 1:
        return ONE_REPORT_EACH
    if spread is None:
        return sampling_of(first, panes, windows=None, held=held, part=part)
    return sampling_of(
        first,
        panes,
        windows=spread.windows,
        reports=spread.reports,
        rolling=spread.rolling,
        part=part,
    )
