"""What a budget for many windows buys: reports in every window, or better ones in some of them."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from rich.console import Console

from ldpstream.agents.plan.ask import PlanRequest
from ldpstream.agents.plan.model import LifePart, LifeWay
from ldpstream.agents.plan.verdict import title
from ldpstream.agents.terminal.fitting import FittingTable
from ldpstream.estimators.planning.compare import Candidate
from ldpstream.estimators.planning.predictions import sampling_variances
from ldpstream.estimators.planning.sweep import SWEPT_QUERIES, sweep
from ldpstream.mechanisms.policies.spending import largest_loss


def plan_life(
    asked: PlanRequest,
    candidates: list[Candidate],
    *,
    windows: int,
    budget: Fraction,
    say: Callable[[str], object] = str,
) -> LifePart | None:
    """Return the errors of one window by how many of them a device reports in; at least 2 windows.

    A device that reports in w of W windows spends the w-th part of the budget on each, and w/W of
    all devices report in a window. Errors are those of the share among all of them: noise, and the
    sampling of a known part (`ldpstream.estimators.bounds.sampling`), which no device's report is
    without but where all report. With `hold` all report in all windows, and an epoch's draw costs
    what a report would: the fewer epochs, the better, and the older the values that they tell of.
    None where the policy's budgets are no parameters. `say` is told what goes on.
    """
    policy = asked.spec.mechanism.policy
    loss = largest_loss(policy)
    configured = min(windows, int(budget / loss))
    chosen = {2**power for power in range(windows.bit_length()) if 2**power < windows}
    reports = sorted({*chosen, windows} | ({configured} if configured else set()))
    losses = [loss if one == configured < windows else budget / one for one in reports]
    # This many epochs are touched at most, wherever a device's begin.
    held = [epochs for epochs in (2, 4, 12) if epochs < windows]
    losses += [budget / epochs for epochs in held]
    factors = [float(one / loss) for one in losses]
    swept = sweep(
        policy,
        asked.spec.domain,
        asked.workload,
        asked.objective,
        "respondents",
        candidates,
        factors=factors,
        say=say,
    )
    if swept is None or not swept.variances:
        return None
    queries = asked.workload.objective(asked.objective).thin(SWEPT_QUERIES)
    sampled = float(sampling_variances(queries, asked.workload.shares).mean())
    ways = []
    counts = [*reports, *(windows for _ in held)]
    lengths = [*(None for _ in reports), *(-(-(windows - 1) // (one - 1)) for one in held)]
    for place, (one, each, hold) in enumerate(zip(counts, losses, lengths, strict=True)):
        known = {key: row[place] for key, row in swept.variances.items() if row[place] > 0.0}
        if not known:
            continue
        best = min(known, key=lambda key: known[key])
        devices = asked.respondents * one / windows
        missing = sampled * (1.0 if asked.estimand == "population" else 1.0 - one / windows)
        ways.append(
            LifeWay(
                way="hold" if hold else "fresh" if one == windows else "spread",
                reports=one,
                hold=hold,
                loss=float(each),
                mechanism=best[0],
                variant=best[1],
                respondents=devices,
                error=float(np.sqrt((known[best] + missing) / devices)),
                configured=one == configured and hold is None,
            )
        )
    return LifePart(windows=windows, budget=float(budget), ways=ways) if ways else None


def show_life(life: LifePart, respondents: int, console: Console) -> None:
    """Print the ways to spend a budget, and which is best."""
    now = [way for way in life.ways if way.hold is None]
    best, held = (min(ways, key=lambda way: way.error) for ways in (now, life.ways))
    also = ""
    if held.hold is not None:
        also = (
            f" With hold = {held.hold:,}: {held.error:.3g}, of values up to {held.hold - 1:,} "
            "windows old."
        )
    console.print(
        f"A budget of {life.budget:g} for {life.windows:,} windows, {respondents:,} devices: least "
        f"error of a window where each reports in {best.reports:,} of them: {best.error:.3g}."
        f"{also}",
        markup=False,
        soft_wrap=True,
    )
    table = FittingTable()
    table.add_column("way", no_wrap=True)
    for column in ("reports of a device", "loss of each", "devices a window", "error"):
        table.add_column(column, justify="right")
    table.add_column("mechanism", no_wrap=True)
    for way in life.ways:
        table.add_row(
            f"{'* ' if way.configured else ''}{way.way}"
            + ("" if way.hold is None else f" = {way.hold:,}"),
            f"{way.reports:,}",
            f"{way.loss:.3g}",
            f"{way.respondents:,.0f}",
            f"{way.error:.3g}",
            title(way.mechanism, way.variant),
        )
    console.print(table)
