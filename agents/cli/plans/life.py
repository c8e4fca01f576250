"""Plans of a budget over many windows: report in every window, or with less noise in some."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from rich.console import Console

from ldpstream.agents.cli.plans.model import LifePart, LifeWay
from ldpstream.agents.cli.plans.planner import Plan, title
from ldpstream.agents.cli.plans.request import PlanRequest
from ldpstream.agents.cli.terminal.tables import FittingTable
from ldpstream.estimators.planning.predictions import sampling_variances
from ldpstream.estimators.planning.sweep import SWEPT_QUERIES, sweep


@dataclass(frozen=True, kw_only=True)
class _Way:
    """One way to spend a budget: the windows with reports, the loss of each and of all together.

    `factor` scales the policy's budgets to those of one report's channel.
    """

    reports: int
    hold: int | None = None
    loss: Fraction
    total: Fraction
    factor: Fraction
    configured: bool = False


def plan_life(
    plan: Plan, *, windows: int, budget: Fraction, say: Callable[[str], object] = str
) -> LifePart | None:
    """Return the error of one window by the number of windows in which a device reports.

    A device that reports in w of W windows spends 1/w of the budget on each, and w/W of all devices
    report in a window. Errors are those of shares among all devices: noise and, unless all report,
    sampling (`ldpstream.estimators.bounds.options`). With `hold` all report in all windows, and an
    epoch's draw costs as much as a report: with fewer epochs, errors are smaller and values older.
    The collection's own way may leave some of the budget unspent and, with `hold`, exceed it.
    None where the policy's budgets are not parameters. `say` is called with the progress.
    """
    request, workload = plan.request, plan.request.workload
    planned = _ways(request, windows=windows, budget=budget)
    swept = sweep(
        request.policy,
        request.spec.domain,
        replace(workload, estimand="respondents"),
        plan.comparison.candidates,
        factors=[float(way.factor) for way in planned],
        say=say,
    )
    if swept is None or not swept.variances:
        return None
    queries = workload.sorting_queries.thin(SWEPT_QUERIES)
    sampled = float(sampling_variances(queries, workload.shares).mean())
    ways = []
    for place, one in enumerate(planned):
        known = {key: row[place] for key, row in swept.variances.items() if row[place] > 0.0}
        if not known:
            continue
        best = min(known, key=lambda key: known[key])
        part = one.reports / windows
        devices = request.respondents * one.reports / windows
        missing = sampled * (1.0 if workload.estimand == "population" else 1.0 - part)
        ways.append(
            LifeWay(
                way="hold" if one.hold else "fresh" if one.reports == windows else "spread",
                reports=one.reports,
                hold=one.hold,
                loss=float(one.loss),
                total=float(one.total),
                mechanism=best[0],
                variant=best[1],
                respondents=devices,
                error=float(np.sqrt((known[best] + missing) / devices)),
                configured=one.configured,
            )
        )
    return LifePart(windows=windows, budget=float(budget), ways=ways) if ways else None


def _ways(request: PlanRequest, *, windows: int, budget: Fraction) -> list[_Way]:
    """Return the ways to compare: reports in few to all windows, then draws that are held."""
    spec = request.collection.spec
    loss = request.policy.largest_loss()
    own = min(windows, int(budget / loss))
    counts = {2**power for power in range(windows.bit_length()) if 2**power < windows}
    ways = []
    for reports in sorted({*counts, windows} | ({own} if own else set())):
        each = loss if reports == own < windows else budget / reports
        ways.append(
            _Way(
                reports=reports,
                loss=each,
                total=reports * each,
                factor=each / loss,
                configured=reports == own and spec.hold is None,
            )
        )
    # `length` is such that the windows touch at most this many epochs, wherever these begin.
    for epochs in (2, 4, 12):
        if epochs < windows:
            each, length = budget / epochs, -(-(windows - 1) // (epochs - 1))
            ways.append(
                _Way(reports=windows, hold=length, loss=each, total=budget, factor=each / loss)
            )
    if spec.hold is not None:
        draw = spec.charged.largest_loss()
        ways.append(
            _Way(
                reports=windows,
                hold=spec.hold.windows,
                loss=draw,
                total=spec.hold.epochs(windows) * draw,
                factor=Fraction(1),
                configured=True,
            )
        )
    return ways


def show_life(life: LifePart, respondents: int, console: Console) -> None:
    """Print the ways to spend a budget, and the best one."""
    within = [way for way in life.ways if way.total <= life.budget]
    now = [way for way in within if way.hold is None]
    best, held = (min(ways, key=lambda way: way.error) for ways in (now, within))
    also = ""
    if held.hold is not None:
        also = (
            f" With hold = {held.hold:,}: {held.error:.3g}, of values up to {held.hold - 1:,} "
            "windows old."
        )
    for way in life.ways:
        if way.total > life.budget:
            also += f" The configured hold = {way.hold:,} may lose {way.total:.3g}, above it."
    console.print(
        f"A budget of {life.budget:g} for {life.windows:,} windows, {respondents:,} devices: the "
        f"error of a window is least if each reports in {best.reports:,} of them: {best.error:.3g}."
        f"{also}",
        markup=False,
        soft_wrap=True,
    )
    console.print("Each row has the mechanism that is best for reports of its loss.", markup=False)
    table = FittingTable()
    table.add_column("way", no_wrap=True)
    for column in ("reports per device", "loss of each", "of all", "devices per window", "error"):
        table.add_column(column, justify="right")
    table.add_column("best mechanism", no_wrap=True)
    for way in life.ways:
        table.add_row(
            f"{'* ' if way.configured else ''}{way.way}"
            + ("" if way.hold is None else f" = {way.hold:,}"),
            f"{way.reports:,}",
            f"{way.loss:.3g}",
            f"{way.total:.3g}",
            f"{way.respondents:,.0f}",
            f"{way.error:.3g}",
            title(way.mechanism, way.variant),
        )
    console.print(table)
