"""A plan as a plot: error against respondents, and against the budget.

Needs matplotlib, from the extra `plots`: import this module only for a plot.
"""

from pathlib import Path
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ldpstream.agents.cli.plans.planner import Plan, named, title
from ldpstream.agents.cli.plans.request import PlanRequest
from ldpstream.estimators.planning.sweep import Key, Sweep

_SPAN: Final = 30.0
_POINTS: Final = 41
_MARKERS: Final = "osD^vP*X<>"
_DOTS_PER_INCH: Final = 150


def draw_plan(plan: Plan, sweep: Sweep | None, file: Path) -> None:
    """Write a PNG with two panels; without a sweep only the first.

    Raises:
        OSError: where the file cannot be written.
    """
    request, candidates = plan.request, plan.comparison.candidates
    panels = 1 if sweep is None else 2
    figure = Figure(figsize=(6.4 * panels + 0.4, 5.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, panels, sharey=True, squeeze=False)[0]
    figure.suptitle(
        f"{request.collection.name}: predicted standard error of {request.workload_text}"
    )
    styles = {
        (candidate.mechanism.id, candidate.variant): (f"C{place % 10}", _MARKERS[place % 10])
        for place, candidate in enumerate(candidates)
    }
    _against_respondents(axes[0], plan, styles)
    if sweep is not None:
        configured = {(one.mechanism.id, one.variant) for one in candidates if one.configured}
        _against_budget(axes[1], request, sweep, styles, configured)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2 * panels, frameon=False)
    figure.savefig(file, dpi=_DOTS_PER_INCH, format="png")


def _against_respondents(axes: Axes, plan: Plan, styles: dict[Key, tuple[str, str]]) -> None:
    request = plan.request
    n = np.geomspace(max(1.0, request.respondents / _SPAN), request.respondents * _SPAN, _POINTS)
    for candidate in plan.comparison.candidates:
        colour, marker = styles[candidate.mechanism.id, candidate.variant]
        axes.plot(
            n,
            np.sqrt(candidate.variance / n),
            color=colour,
            marker=marker,
            markevery=(_POINTS // 2, _POINTS),
            linestyle="-" if candidate.configured else "--",
            label=named(candidate) + (" (configured)" if candidate.configured else ""),
        )
    _finish(axes, "respondents", request.respondents)
    axes.set_ylabel(f"standard error of a share ({request.workload.estimand})")
    axes.set_title("at the policy's budgets")


def _against_budget(
    axes: Axes,
    request: PlanRequest,
    sweep: Sweep,
    styles: dict[Key, tuple[str, str]],
    configured: set[Key],
) -> None:
    epsilon = request.policy.describe().get("epsilon")
    whole = isinstance(epsilon, int | float)
    unit = float(epsilon) if isinstance(epsilon, int | float) else 1.0
    for key, variances in sweep.variances.items():
        colour, marker = styles[key]
        axes.plot(
            sweep.factors * unit,
            np.sqrt(variances / request.respondents),
            color=colour,
            marker=marker,
            markersize=4,
            linestyle="-" if key in configured else "--",
            label=title(*key),
        )
    _finish(axes, "epsilon" if whole else "every budget of the policy, times", unit)
    axes.xaxis.set_major_formatter(_plain)
    axes.xaxis.set_minor_formatter(_plain)
    partly = f" ({sweep.queries} of {sweep.total:,} queries)" * (sweep.queries < sweep.total)
    axes.set_title(f"at {request.respondents:,} respondents{partly}")


def _finish(axes: Axes, label: str, here: float) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.axvline(here, color="0.6", linewidth=1, linestyle=":")
    axes.set_xlabel(label)
    axes.grid(visible=True, which="both", color="0.9", linewidth=0.6)


def _plain(tick: float, _place: float) -> str:
    """Return 1, 2 and 5 times powers of ten as plain numbers, and nothing for other ticks."""
    digits = f"{tick:.6e}".split("e")[0].rstrip("0").rstrip(".")
    return f"{tick:g}" if digits in {"1", "2", "5"} else ""
