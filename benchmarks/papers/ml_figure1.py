"""Redraw figure 1 of Xiang et al. ([ML]), with the exact variance.

    python -m benchmarks.papers.ml_figure1

Needs extra `plots`. Zipf(1.1) in every dimension, all single values and 100 random ranges, the
mean of 3 repetitions, as in the paper. Its m, n and D are not in the text that we have. Ours are
4,096 values in all, as a line, 64 x 64 and 16 x 16 x 16; against epsilon with 100,000 users, and
against the number of users at epsilon 1. Ranges have uniform ends, and the same 100 are used
everywhere.

Measured squared errors of `l1-bits` (the paper's mechanism, but its last entry is exact) and of
`l1-geometric` stand next to their exact expectations. The 100 ranges of a repetition share their
noise, and so do the values of `l1-geometric` near the most frequent one: means over 3 repetitions
scatter by a third.

The paper's expression of Theorems 2 and 3, with constant 1, is no upper bound in two dimensions or
more (docs/theory.md, corrections). It still lies above the means: ranges with random ends seldom
hold the first values, which most users have. The tables say how many of the 100 ranges exceed it;
the last table, and the crosses in the picture, show a range that holds all users.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.papers.ml_errors import (
    KINDS,
    Errors,
    Kind,
    exact_variances,
    largest_variance,
    measured_errors,
    measured_inside,
    paper_expression,
)

SHAPES: tuple[tuple[int, ...], ...] = ((4096,), (64, 64), (16, 16, 16))
EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
USERS = (1_000, 3_000, 10_000, 30_000, 100_000)
EPSILON, MOST_USERS, REPETITIONS = 1.0, USERS[-1], 3
INSIDE_USERS, INSIDE_REPETITIONS = 100, 4000
COLOURS = {"l1-bits": "tab:blue", "l1-geometric": "tab:green"}
PAPER, LARGEST = "tab:red", "black"


@dataclass(frozen=True)
class Point:
    """One mechanism's exact and measured mean squared errors, in users squared."""

    kind: Kind
    epsilon: float
    users: int
    exact: Errors
    measured: Errors


def settings() -> list[tuple[float, int]]:
    """Return all epsilons with the most users, then fewer users at one epsilon."""
    fewer = [(EPSILON, users) for users in USERS if users != MOST_USERS]
    return [(epsilon, MOST_USERS) for epsilon in EPSILONS] + fewer


def measure(shape: tuple[int, ...], repetitions: int) -> list[Point]:
    """Return all points of one domain."""
    points: list[Point] = []
    for place, (epsilon, users) in enumerate(settings()):
        for kind in KINDS:
            a_user = exact_variances(kind, epsilon, shape)
            exact = Errors(users * a_user.values, users * a_user.ranges)
            seed = 1000 * len(shape) + 10 * place + KINDS.index(kind)
            measured = measured_errors(kind, epsilon, shape, users, repetitions, seed)
            points.append(Point(kind, epsilon, users, exact, measured))
    return points


def print_points(shape: tuple[int, ...], points: list[Point]) -> None:
    """Print one domain's table."""
    sizes, dimensions = " x ".join(map(str, shape)), len(shape)
    print(f"\nD = {dimensions}, {sizes}: mean squared errors of counts")
    heads = "".join(f"{head:>12}{'measured':>12}{'ratio':>7}" for head in ("values", "ranges"))
    print(f"{'eps':>5}{'n':>9} {'':13}{heads}{'Thm 2/3':>12}{'above it':>10}{'largest':>12}")
    for point in points:
        row = f"{point.epsilon:5g}{point.users:9,} {point.kind.id:13}"
        for exact, measured in (
            (point.exact.values, point.measured.values),
            (point.exact.ranges, point.measured.ranges),
        ):
            row += f"{exact.mean():12.4g}{measured.mean():12.4g}"
            row += f"{measured.mean() / exact.mean():7.2f}"
        if point.kind is KINDS[0]:
            paper = point.users * paper_expression(point.epsilon, dimensions)
            largest = point.users * largest_variance(point.epsilon, dimensions)
            # Equal to it in one dimension, up to the rounding of the realised probabilities.
            above = np.count_nonzero(point.exact.ranges > paper * (1.0 + 1e-9))
            row += f"{paper:12.4g}{above:6} of {len(point.exact.ranges)}{largest:12.4g}"
        print(row)


def print_inside(measured: dict[int, float]) -> None:
    """Print the variances of ranges that hold all users, by number of dimensions."""
    print(
        f"\nl1-bits, all users inside the range, epsilon {EPSILON:g}, a user ({INSIDE_USERS} users,"
        f" {INSIDE_REPETITIONS:,} repetitions: measured within some 3%)"
    )
    print(f"{'D':>3}{'Thm 2/3':>12}{'exact':>12}{'measured':>12}")
    for dimensions, found in measured.items():
        paper, exact = paper_expression(EPSILON, dimensions), largest_variance(EPSILON, dimensions)
        print(f"{dimensions:3}{paper:12.4g}{exact:12.4g}{found:12.4g}")


def draw_points(axes: Axes, points: list[Point], *, over_users: bool) -> None:
    """Draw the mechanisms in one panel: exact lines, measured marks."""
    for kind in KINDS:
        chosen = [
            point
            for point in points
            if point.kind is kind
            and (point.epsilon == EPSILON if over_users else point.users == MOST_USERS)
        ]
        chosen.sort(key=lambda point: (point.users, point.epsilon))
        x = [point.users if over_users else point.epsilon for point in chosen]
        for name, style, mark in (("ranges", "-", "o"), ("values", "--", "s")):
            exact = [float(getattr(point.exact, name).mean()) for point in chosen]
            measured = [float(getattr(point.measured, name).mean()) for point in chosen]
            title, colour = f"{kind.id}, {name}", COLOURS[kind.id]
            axes.plot(x, exact, linestyle=style, color=colour, label=f"{title}: exact")
            axes.plot(x, measured, mark, color=colour, fillstyle="none", label=f"{title}: measured")


def draw_expressions(axes: Axes, dimensions: int, inside: float, *, over_users: bool) -> None:
    """Draw the paper's expression, the largest variance, and a measured range that attains it."""
    first, last = (USERS[0], USERS[-1]) if over_users else (EPSILONS[0], EPSILONS[-1])
    x = np.geomspace(first, last, 60)
    pairs = [(EPSILON, value) if over_users else (value, MOST_USERS) for value in x.tolist()]
    paper = [users * paper_expression(epsilon, dimensions) for epsilon, users in pairs]
    largest = [users * largest_variance(epsilon, dimensions) for epsilon, users in pairs]
    axes.plot(x, paper, ":", color=PAPER, linewidth=2.2, label="Theorem 2/3, constant 1")
    axes.plot(x, largest, ":", color=LARGEST, label="l1-bits, most of any range: exact")
    mark: dict[str, Any] = {"marker": "x", "color": LARGEST, "linestyle": "none", "markersize": 9}
    label = f"all users inside: measured with {INSIDE_USERS}"
    axes.plot(MOST_USERS if over_users else EPSILON, MOST_USERS * inside, label=label, **mark)
    axes.set(xscale="log", yscale="log", xlabel="users n" if over_users else "epsilon")
    axes.set_ylabel("mean squared error of counts")
    axes.grid(visible=True, alpha=0.3)
    if not over_users:
        axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
        axes.minorticks_off()
    if dimensions > 1:
        place, side = (0.02, "left") if over_users else (0.98, "right")
        remark = "Theorem 2/3: no upper bound"
        axes.text(place, 0.94, remark, color=PAPER, ha=side, transform=axes.transAxes)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers.ml_figure1")
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    parser.add_argument("--picture", type=Path, default=Path("build/ml_figure1.png"))
    options = parser.parse_args()
    figure = Figure(figsize=(18, 11), layout="constrained")
    places, inside = figure.subplots(2, len(SHAPES)), {}
    for column, shape in enumerate(SHAPES):
        points, sizes = measure(shape, options.repetitions), " x ".join(map(str, shape))
        print_points(shape, points)
        dimensions = len(shape)
        inside[dimensions] = measured_inside(
            EPSILON, dimensions, INSIDE_USERS, INSIDE_REPETITIONS, dimensions
        )
        for row, over_users in enumerate((False, True)):
            axes = places[row, column]
            draw_points(axes, points, over_users=over_users)
            draw_expressions(axes, dimensions, inside[dimensions], over_users=over_users)
            fixed = f"epsilon {EPSILON:g}" if over_users else f"n = {MOST_USERS:,}"
            axes.set_title(f"D = {dimensions}: {sizes}, {fixed}")
    print_inside(inside)
    figure.suptitle(
        "Squared errors of counts under epsilon * L1, Zipf(1.1): all single values, 100 random "
        f"ranges; marks are means of {options.repetitions} repetitions"
    )
    handles, labels = places[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6)
    options.picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(options.picture, dpi=110)
    print(f"\nwrote {options.picture}")


if __name__ == "__main__":
    main()
