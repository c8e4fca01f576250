"""`spread`: in how many panes devices take part, and how estimates account for it.

Workers cannot observe it: they trust the configuration about the devices' ledgers.
"""

from dataclasses import dataclass
from fractions import Fraction

from ldpstream.agents.config.errors import ConfigError
from ldpstream.agents.config.tables import SpreadTable
from ldpstream.agents.privacy import YEAR_MS, factor_text, round_up
from ldpstream.agents.state.windows import WindowSpec
from ldpstream.estimators.bounds.sampling import ONE_REPORT_EACH, Sampling, sampling_of
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.base.times import format_duration
from ldpstream.mechanisms.ledger.spread import MAX_SPREAD_WINDOWS
from ldpstream.mechanisms.policies.matrix import MAX_MATRIX_VALUES
from ldpstream.mechanisms.policies.spending import largest_loss
from ldpstream.mechanisms.wire.spec import CollectionSpec


@dataclass(frozen=True)
class SpreadConfig:
    """Devices take part in `reports` of the `windows` panes of each horizon."""

    reports: int
    windows: int
    horizon_ms: int
    rolling: bool

    def budget(self, spec: CollectionSpec) -> Fraction:
        """Return what all reports of a period may lose together, exactly."""
        return self.reports * largest_loss(spec.mechanism.policy)

    def most(self, windows: int) -> int:
        """Return in how many of any `windows` >= 1 consecutive windows a device reports at most.

        Unless rolling, a stretch across two periods may contain windows drawn for both.
        """
        if self.rolling:
            whole, rest = divmod(windows, self.windows)
            return whole * self.reports + min(rest, self.reports)
        return max(
            min(first, self.reports)
            + (windows - first) // self.windows * self.reports
            + min((windows - first) % self.windows, self.reports)
            for first in range(min(self.reports, windows) + 1)
        )

    def sentence(self, spec: CollectionSpec) -> str:
        """Return what a device loses over time.

        A year may touch one period more than it contains, unless the windows are the same in every
        period.
        """
        most = -(-YEAR_MS * self.windows // self.horizon_ms)
        periods = -(-YEAR_MS // self.horizon_ms) + (not self.rolling)
        period = self.budget(spec)
        year = min(periods * self.reports, most) * largest_loss(spec.mechanism.policy)
        each = format_duration(self.horizon_ms)
        several = f"{self.reports:,} of the {self.windows:,} windows"
        among = several if self.windows > 1 else "the one window"
        return (
            f"A device whose ledger spreads its budget reports in {among} of each {each}, drawn "
            "from its secret, whatever its values are. Against whoever reads the topic "
            f"and knows which reports are its own, those of one {each} lose at most "
            f"{round_up(period, 2)} together (a factor of {factor_text(period)}), and those of a "
            f"year {round_up(year, 2)}."
        )


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
