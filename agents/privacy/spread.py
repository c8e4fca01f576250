"""Devices that take part in some windows of each period, and what that costs them."""

from dataclasses import dataclass
from fractions import Fraction

from ldpstream.agents.privacy.factors import factor_text, round_up
from ldpstream.agents.privacy.statement import YEAR_MS
from ldpstream.mechanisms.base.times import format_duration
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
        """Return what a device loses over time."""
        period = self.budget(spec)
        # A year is said in windows: 365 days that begin inside one touch one more.
        windows = -(-YEAR_MS * self.windows // self.horizon_ms)
        row = format_duration(windows * self.horizon_ms // self.windows)
        year = self.most(windows) * largest_loss(spec.mechanism.policy)
        each = format_duration(self.horizon_ms)
        several = f"{self.reports:,} of the {self.windows:,} windows"
        among = several if self.windows > 1 else "the one window"
        return (
            f"A device whose ledger spreads its budget reports in {among} of each {each}, drawn "
            "from its secret, whatever its values are. Against whoever reads the topic "
            f"and knows which reports are its own, those of one {each} lose at most "
            f"{round_up(period, 2)} together (a factor of {factor_text(period)}), and those of any "
            f"{windows:,} windows in a row ({row}) {round_up(year, 2)}."
        )
