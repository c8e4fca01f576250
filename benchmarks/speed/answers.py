"""The cost of single answers: `python -m benchmarks.speed.answers [NAME ...]`, one process a row.

Prints processor time, the least of several repetitions, and the process's peak memory. A document
is built and serialised; a plan is made without the search for the best channel.
"""

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ldpstream.agents.cli.plans.planner import make_plan
from ldpstream.agents.cli.plans.request import PlanRequest
from ldpstream.agents.config import CollectionConfig, read_config
from ldpstream.agents.document.build import write_document
from ldpstream.agents.state.context import WindowTotals
from ldpstream.estimators.estimate import estimate_values

REPORTS = 1_000_000
GEOMETRY = {"mechanism": "projective-geometry", "epsilon": 1.0}
MILLION = {"domain": {"size": 1_000_000}, "publish": {"top": 20, "ranges": {"r": [10, 2_000]}}}


def collection(**table: Any) -> CollectionConfig:
    """Return a collection with these keys."""
    tables = {"collection": {"c": table}}
    return read_config(tables, base=Path(), environment={}).collections["c"]


def totals(config: CollectionConfig) -> WindowTotals:
    """Return counts of reports drawn uniformly."""
    size = config.spec.mechanism.empty().size
    statistic = np.random.default_rng(1).multinomial(REPORTS, np.full(size, 1.0 / size))
    return WindowTotals(0, 3_600_000, statistic, REPORTS, late=0, rejected=0)


def values(method: Any = "padded", **table: Any) -> Callable[[], object]:
    """Return a call that estimates all values with their bounds."""
    config = collection(**table)
    given = totals(config)
    mechanism = config.spec.mechanism
    return partial(estimate_values, mechanism, given.statistic, REPORTS, method=method)


def document(**table: Any) -> Callable[[], object]:
    """Return a call that writes the document that a collection publishes."""
    config = collection(**table)
    given = totals(config)
    return lambda: write_document(config, given, window=None, final=True)


def plan(size: int, **table: Any) -> Callable[[], object]:
    """Return a call that plans a collection of classical LDP over a line."""
    config = collection(
        mechanism="randomized-response", epsilon=1.0, domain={"size": size}, **table
    )
    request = PlanRequest(collection=config, respondents=10_000, search_seconds=0.0)
    return partial(make_plan, request)


QUARTILES = {"quantiles": [0.25, 0.5, 0.75], "top": 0}
ROWS: dict[str, tuple[Callable[[], Callable[[], object]], int]] = {
    "geometry-values": (partial(values, **GEOMETRY, domain={"size": 43_750}), 40),
    "geometry-quantiles": (
        partial(document, **GEOMETRY, domain={"size": 1_000}, publish=QUARTILES),
        3,
    ),
    **{
        f"{method}-values": (
            partial(
                values,
                method=method,
                mechanism="block-hadamard",
                epsilon=1.0,
                domain={"size": 43_750, "blocks": 875},
            ),
            40,
        )
        for method in ("normal", "padded", "anytime")
    },
    "million-geometry": (partial(document, **GEOMETRY, **MILLION), 2),
    "million-hadamard": (
        partial(document, mechanism="block-hadamard", epsilon=1.0, **MILLION),
        2,
    ),
    "million-response": (
        partial(document, mechanism="randomized-response", epsilon=1.0, **MILLION),
        2,
    ),
    "plan-256-ranges": (partial(plan, 256, publish={"ranges": {"r": [10, 99]}}), 1),
    "plan-1000": (partial(plan, 1_000), 1),
}
"""The measured calls, and the repetitions after a first call; a plan is made only once."""


def measure(name: str) -> None:
    """Print one row: least processor seconds, and peak memory."""
    make, repetitions = ROWS[name]
    call = make()
    first = _seconds(call)
    least = min([first] * (repetitions == 1) + [_seconds(call) for _ in range(repetitions - 1)])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"| {name} | {1e3 * first:,.1f} | {1e3 * least:,.1f} | {peak:,.0f} |", flush=True)


def _seconds(call: Callable[[], object]) -> float:
    begun = time.process_time()
    call()
    return time.process_time() - begun


def main(names: list[str]) -> None:
    if len(names) == 1:
        measure(*names)
        return
    print("| answer | first, ms | least, ms | peak MiB |\n| --- | ---: | ---: | ---: |", flush=True)
    for name in names or ROWS:
        subprocess.run([sys.executable, "-m", "benchmarks.speed.answers", name], check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
