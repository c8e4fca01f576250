"""Plans of a budget over many windows: report in every window, or with less noise in some."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from rich.console import Console

from ldpstream.agents.cli.plans.model import LifePart, LifeWay
from ldpstream.agents.cli.plans.planner import Plan, title
from ldpstream.agents.cli.plans.request import PlanRequest
from ldpstream.agents.cli.terminal.tables import FittingTable
from ldpstream.estimators.planning.predictions import sampling_variances
from ldpstream.estimators.planning.sweep import SWEPT_QUERIES, sweep


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
    factors, planned = zip(*_ways(request, windows=windows, budget=budget), strict=True)
    swept = sweep(
        request.policy,
        request.spec.domain,
        replace(workload, estimand="respondents"),
        plan.comparison.candidates,
        factors=factors,
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
        reports = one["reports"]
        part = reports / windows
        devices = request.respondents * reports / windows
        missing = sampled * (1.0 if workload.estimand == "population" else 1.0 - part)
        ways.append(
            LifeWay(
                **one,
                way="hold" if one["hold"] else "fresh" if reports == windows else "spread",
                mechanism=best[0],
                variant=best[1],
                respondents=devices,
                error=float(np.sqrt((known[best] + missing) / devices)),
            )
        )
    return LifePart(windows=windows, budget=float(budget), ways=ways) if ways else None


def _ways(
    request: PlanRequest, *, windows: int, budget: Fraction
) -> Iterator[tuple[float, dict[str, Any]]]:
    """Yield the ways to compare: reports in few to all windows, then draws that are held.

    Each has a factor, which scales the policy's budgets to those of one report's channel, and the
    fields of `LifeWay` that are known without an error.
    """
    spec = request.collection.spec
    loss = request.policy.largest_loss()

    def way(
        reports: int, each: Fraction, total: Fraction, *, hold: int | None = None, own: bool = False
    ) -> tuple[float, dict[str, Any]]:
        known = {"reports": reports, "hold": hold, "loss": float(each), "total": float(total)}
        # The collection's own draw is at the policy's budgets.
        return float(1 if own and hold else each / loss), {**known, "configured": own}

    own = min(windows, int(budget / loss))
    counts = {2**power for power in range(windows.bit_length()) if 2**power < windows}
    for reports in sorted({*counts, windows} | ({own} if own else set())):
        each = loss if reports == own < windows else budget / reports
        yield way(reports, each, reports * each, own=reports == own and spec.hold is None)
    # `length` is such that the windows touch at most this many epochs, wherever these begin.
    for epochs in (2, 4, 12):
        if epochs < windows:
            length = -(-(windows - 1) // (epochs - 1))
            yield way(windows, budget / epochs, budget, hold=length)
    if spec.hold is not None:
        draw = spec.charged.largest_loss()
        total = spec.hold.epochs(windows) * draw
        yield way(windows, draw, total, hold=spec.hold.windows, own=True)


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
