"""Collections of every kind that the page draws differently, with reports in some windows."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.stream.serving import (
    MINUTE_MS,
    START_MS,
    Pipeline,
    Served,
    serve_collections,
    stopped_clock,
)

WINDOWS = 8
NOW = "2026-11-21T10:08:10Z"
"""The time on the wall: a moment after the newest reports."""
EACH: dict[str, Any] = {
    "partitions": 1,
    # Open windows are looked at, and of those of few reports nothing would be shown.
    "minimum": 1,
    "window": {"size": "1m", "retention": "1h"},
}
PLACES: dict[str, Any] = {
    **EACH,
    "mechanism": "block-hadamard",
    "epsilon": 3.0,
    "domain": {"grid": [125, 350], "blocks": [25, 35]},
    "window": {"size": "1m", "idle": "off", "retention": "1h"},
    "publish": {
        "every": "100ms",
        "top": 20,
        "ranges": {"harbour": [[40, 60], [100, 120]], "old town": [[60, 80], [200, 240]]},
    },
}
AGES: dict[str, Any] = {
    "mechanism": "l1-geometric",
    "epsilon": 0.4,
    "domain": {"interval": [0.0, 100.0], "bins": 50},
    **EACH,
    "publish": {
        "every": "100ms",
        "top": 10,
        "quantiles": [0.1, 0.5, 0.9],
        "ranges": {"under 18": [0.0, 18.0], "65 and older": [66.0, 100.0]},
    },
}
MODES: dict[str, Any] = {
    "mechanism": "randomized-response",
    "epsilon": 1.0,
    "domain": {"values": ["walk", "bike", "bus", "tram", "train", "car"]},
    **EACH,
    "publish": {
        "every": "100ms",
        "top": 6,
        "linear": {
            "fare": {"bus": 2.5, "tram": 2.5, "train": 4.0},
            "speed": [5, 15, 20, 20, 80, 40],
        },
    },
}
SMOKERS: dict[str, Any] = {
    "mechanism": "lip",
    "epsilon": 1.0,
    "prior": {"levels": 8},
    "domain": {"values": ["no", "yes"]},
    **EACH,
    "publish": {"every": "100ms", "top": 2},
}
WINDOW: dict[str, Any] = {
    **EACH,
    "publish": {"every": "100ms", "top": 6, "quantiles": [0.5]},
}
HOURS: dict[str, Any] = {
    "mechanism": "l1-geometric",
    "epsilon": 2.0,
    "domain": {"interval": [0.0, 0.7], "bins": 7, "rounding": "random"},
    **WINDOW,
}
FLOORS: dict[str, Any] = {
    "mechanism": "l1-geometric",
    "epsilon": 2.0,
    "domain": {"size": 7},
    "weights": {"public": 5},
    **WINDOW,
}
SPOTS: dict[str, Any] = {
    "mechanism": "l1-geometric",
    "epsilon": 2.0,
    "domain": {"interval": [[0.0, 0.7], [-1.0, 1.0]], "bins": [7, 6]},
    **WINDOW,
    "publish": {"every": "100ms", "top": 6},
}
TABLES = {
    "modes": MODES,
    "ages": AGES,
    "places": PLACES,
    "smokers": SMOKERS,
    "hours": HOURS,
    "floors": FLOORS,
    "spots": SPOTS,
}


Labels = list[Any]


def places(rng: np.random.Generator, n: int) -> Labels:
    """Return n places of the grid, most of them around a few centres."""
    centres = np.array([[50, 110], [70, 220], [28, 262], [96, 148], [60, 40]])
    spread = np.array([[2.5, 4.0], [4.0, 3.0], [2.0, 2.5], [2.5, 2.5], [1.5, 2.0]])
    which = rng.choice(5, size=n, p=[0.34, 0.3, 0.16, 0.12, 0.08])
    found = rng.normal(centres[which], spread[which]).astype(int)
    inside: Labels = found.clip([0, 0], [124, 349]).tolist()
    return inside


def ages(rng: np.random.Generator, n: int) -> Labels:
    """Return n ages, of children and of their elders."""
    old = rng.random(n) < 0.7
    found: Labels = np.where(old, rng.normal(50, 16, n), rng.normal(14, 6, n)).clip(0, 100).tolist()
    return found


def modes(rng: np.random.Generator, n: int) -> Labels:
    """Return n ways to travel."""
    names = MODES["domain"]["values"]
    found: Labels = rng.choice(names, size=n, p=[0.28, 0.12, 0.2, 0.08, 0.07, 0.25]).tolist()
    return found


def smokers(rng: np.random.Generator, n: int) -> Labels:
    """Return n answers with the prior of each."""
    priors = rng.uniform(0.05, 0.6, n)
    return [["yes" if rng.random() < p else "no", float(p)] for p in priors]


def hours(rng: np.random.Generator, n: int) -> Labels:
    """Return n numbers that are rounded at random."""
    found: Labels = rng.uniform(0.0, 0.7, n).tolist()
    return found


def floors(rng: np.random.Generator, n: int) -> Labels:
    """Return n floors with a weight of each."""
    found: Labels = rng.integers([0, 0], [7, 6], (n, 2)).tolist()
    return found


def spots(rng: np.random.Generator, n: int) -> Labels:
    """Return n points of a plane."""
    found: Labels = rng.uniform([0.0, -1.0], [0.7, 1.0], (n, 2)).tolist()
    return found


MAKE: dict[str, Callable[[np.random.Generator, int], Labels]] = {
    "hours": hours,
    "floors": floors,
    "spots": spots,
    "places": places,
    "ages": ages,
    "modes": modes,
    "smokers": smokers,
}


def report(served: Served, minute: int, n: int, *, seed: int) -> None:
    """Count n reports in the window of a minute."""
    labels = MAKE[served.config.name](np.random.default_rng(1000 + seed), n)
    served.report(0, labels, times_ms=[START_MS + minute * MINUTE_MS] * n, seed=seed)


def show_collections(*, reports: int = 4_000, windows: int = WINDOWS) -> Pipeline:
    """Return collections whose last window is open and all before it final."""
    pipeline = serve_collections(TABLES)
    pipeline.clock = stopped_clock(NOW)
    for served in pipeline.collections.values():
        for minute in range(windows):
            n = reports if minute < windows - 1 else reports // 2
            report(served, minute, n + 371 * minute, seed=minute + 1)
        served.close(START_MS + (windows - 1) * MINUTE_MS)
    return pipeline
