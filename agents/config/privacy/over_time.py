"""What the reports of a device lose together: at most, and so far.

The most follows from what the configuration says devices do: take part in some windows of each
period, hold one draw for many windows, or report in every window. What a device has lost so far is
what its ledger says it has spent.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from ldpstream.agents.config.privacy.factors import (
    NO_LIMIT,
    factor_phrase,
    loss_text,
    odds_factor,
    round_up,
)
from ldpstream.agents.config.privacy.statement import (
    YEAR_MS,
    Limit,
    LossOverTime,
)
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.base.times import format_duration
from ldpstream.mechanisms.channels.permanent_draw import most_periods
from ldpstream.mechanisms.ledger.spent import Spent
from ldpstream.mechanisms.wire.spec import CollectionSpec

_DAY_MS: Final = 86_400_000
_SPANS: Final = (("any 24 hours", _DAY_MS), ("any 7 days", 7 * _DAY_MS))


@dataclass(frozen=True)
class SpreadConfig:
    """Devices take part in `reports` of the `windows` panes of each horizon."""

    reports: int
    windows: int
    horizon_ms: int
    rolling: bool

    def budget(self, spec: CollectionSpec) -> Fraction:
        """Return what all reports of a period may lose together, exactly."""
        return self.reports * spec.mechanism.policy.largest_loss()

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
        windows = most_periods(YEAR_MS, self.horizon_ms // self.windows)
        year = self.most(windows) * spec.mechanism.policy.largest_loss()
        each = format_duration(self.horizon_ms)
        several = f"{self.reports:,} of the {self.windows:,} windows"
        among = several if self.windows > 1 else "the one window"
        return (
            f"A device whose ledger spreads its budget reports in {among} of each {each}, drawn "
            "from its secret, whatever its values are. Against whoever reads the topic "
            f"and knows which reports are its own, those of one {each} lose at most "
            f"{round_up(period, 2)} together ({factor_phrase(period)}), and those of any "
            f"365 days, which touch up to {windows:,} windows, {round_up(year, 2)}."
        )


def limit_of(spec: CollectionSpec, spread: SpreadConfig | None) -> Limit | None:
    """Return what keeps a device with a ledger from one charge in every window, if anything."""
    if spec.words is not None:
        return "words"
    if spec.hold is not None:
        return "hold"
    return None if spread is None else "spread"


def charges(spec: CollectionSpec, spread: SpreadConfig | None, windows: int) -> int:
    """Return the most reports (with hold: draws) that any `windows` consecutive windows cost."""
    if spec.words is not None:
        return most_periods(windows, spec.words.rounds)
    if spec.hold is not None:
        return spec.hold.epochs(windows)
    return windows if spread is None else spread.most(windows)


def losses_over_time(
    spec: CollectionSpec, spread: SpreadConfig | None, window_ms: int
) -> list[LossOverTime]:
    """Return the loss of one report, then of longer and longer times, ending with a year.

    `window_ms` is the length of a ledger's window. The result is empty where budgets of single
    pairs are too many to add up.
    """
    try:
        report, charge = spec.mechanism.policy.largest_loss(), spec.charged.largest_loss()
    except SpecError:
        return []
    losses = [("one report", 1, report)]
    losses += [(over, number, number * charge) for over, number in _times(spec, spread, window_ms)]
    return [
        LossOverTime(over=over, charges=number, loss=loss_text(loss), factor=odds_factor(loss))
        for over, number, loss in losses
    ]


def _times(
    spec: CollectionSpec, spread: SpreadConfig | None, window_ms: int
) -> Iterator[tuple[str, int]]:
    """Yield the times in words, and the most charges of each, wherever they begin."""
    year = most_periods(YEAR_MS, window_ms)
    if spec.words is not None:
        yield f"a run of {spec.words.rounds:,} rounds", 1
    elif spec.hold is not None:
        yield f"an epoch of {format_duration(spec.hold.windows * window_ms)}", 1
    elif spread is not None:
        horizon = format_duration(spread.horizon_ms)
        yield f"a period of {horizon}", spread.reports
        if spread.most(spread.windows) > spread.reports:
            yield f"any {_windows(spread.windows)} in a row", spread.most(spread.windows)
    else:
        short = next(((name, ms) for name, ms in _SPANS if ms > window_ms), None)
        if short is not None:
            several = most_periods(short[1], window_ms)
            yield f"{short[0]}: {_windows(several)}", several
    yield f"any 365 days: {_windows(year)}", charges(spec, spread, year)


def _windows(number: int) -> str:
    return f"{number:,} window{'s' * (number > 1)}"


def spent_sentences(spent: Spent, stretch: str) -> tuple[str, ...]:
    """Return sentences about what all reports in a time, such as "the past year", have lost."""
    if not spent.windows:
        return (f"In {stretch} this device has reported nothing.",)
    reports: Counter[str] = Counter()
    for window in spent.windows:
        reports[window.collection] += window.reports
    totals: dict[str, Fraction] = {}
    for window in spent.windows:
        totals[window.collection] = totals.get(window.collection, Fraction(0)) + window.loss
    of_each = ", ".join(
        f"{number:,} to {name} ({round_up(totals[name], 2)})"
        for name, number in sorted(reports.items())
    )
    number, factor = reports.total(), odds_factor(spent.total)
    times = "any number of" if factor == NO_LIMIT else f"at most {factor}"
    return (
        (
            f"In {stretch} this device has given {number:,} report{'s' * (number > 1)}: {of_each}. "
            f"They lose at most {round_up(spent.total, 2)} together: all of them are {times} "
            "times likelier for one history of values than for another that the policies protect "
            "it from."
        ),
        (
            "That is against whoever has the single reports and knows that they are this device's: "
            "the operators of broker, gateway and workers, and whoever they show the topic to. "
            "Whoever sees only published estimates learns no more than that."
        ),
    )
