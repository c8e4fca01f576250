"""Plans of a budget over many windows: report in every window, or with less noise in some."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from ldpstream.agents.cli.plans.model import LifePart, LifeWay
from ldpstream.agents.cli.plans.request import PlanRequest
from ldpstream.estimators.planning.compare import Comparison
from ldpstream.estimators.planning.predictions import sampling_variances
from ldpstream.estimators.planning.sweep import SWEPT_QUERIES, sweep
from ldpstream.mechanisms.base.errors import SpecError


class LifeError(ValueError):
    """Reports of windows cannot share a budget; the message says what was expected."""


def plan_life(
    request: PlanRequest, comparison: Comparison, *, windows: int, say: Callable[[str], object]
) -> LifePart:
    """Return the error of one window by the number of windows in which a device reports.

    A device that reports in w of W windows spends 1/w of the budget on each, and w/W of all devices
    report in a window. Errors are those of shares among all devices: noise and, unless all report,
    sampling (`ldpstream.estimators.bounds.options`). With `hold` all report in all windows, and an
    epoch's draw costs as much as a report: with fewer epochs, errors are smaller and values older.
    The collection's own way may leave some of the budget unspent and, with `hold`, exceed it.
    `say` is called with the progress.

    Raises:
        LifeError: where the policy's budgets are not parameters, or one is too small or too large.
    """
    workload, budget = request.workload, request.budget
    factors, planned = zip(*_ways(request, windows=windows, budget=budget), strict=True)
    try:
        variances = sweep(
            request.policy,
            request.spec.domain,
            replace(workload, estimand="respondents"),
            comparison.candidates,
            factors=factors,
            say=say,
        )
    except SpecError as error:
        raise LifeError(f"windows: {error}") from error
    queries = workload.sorting_queries.thin(SWEPT_QUERIES)
    sampled = float(sampling_variances(queries, workload.shares).mean())
    ways = []
    for place, way in enumerate(planned):
        known = {key: row[place] for key, row in variances.items() if row[place] > 0.0}
        if not known:
            continue
        best = min(known, key=lambda key: known[key])
        reports = way["reports"]
        share = reports / windows
        devices = request.respondents * reports / windows
        missing = sampled * (1.0 if workload.estimand == "population" else 1.0 - share)
        ways.append(
            LifeWay(
                **way,
                way="hold" if way["hold"] else "fresh" if reports == windows else "spread",
                mechanism=best[0],
                variant=best[1],
                respondents=devices,
                error=float(np.sqrt((known[best] + missing) / devices)),
            )
        )
    if not ways:
        raise LifeError("windows: expected a mechanism whose policy has a parameter epsilon")
    return LifePart(windows=windows, budget=float(budget), ways=ways)


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
