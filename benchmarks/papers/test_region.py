"""What a report reveals to a test: `python -m benchmarks.papers.test_region FILE.png`.

Figure 1 of Acharya et al. 2020: the errors that a policy leaves to tests between two values
(Theorem 1), with the vertex that the appendix misprints (it gives P_FA twice; P_MD is
`(e^a - 1)/(e^(a+b) - 1)`, a = E[x, x'], b = E[x', x]). One panel for two finite budgets, one for an
infinite one, and one in which the best tests of a channel leave the region. Needs the extra
`plots`.
"""

import argparse
import math
from fractions import Fraction
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ldpstream.mechanisms.channels.channel import Channel
from ldpstream.mechanisms.channels.error_region import ErrorRegion, Errors, channel_boundary
from ldpstream.mechanisms.exact.dyadic import budget
from ldpstream.mechanisms.families.l1.geometric import L1Geometric

INK, REGION, BOUND = "#222222", "#cfe0f3", "#1f5fa8"
KEPT, BROKEN, GUESSING = "#15803d", "#c2410c", "#777777"


def draw_region(axes: Axes, region: ErrorRegion) -> None:
    """Shade the errors that tests may have, draw both bounds and mark where they meet.

    The dashed bounds are those of the opposite tests, which swap the answers.
    """
    axes.fill(*zip(*region.vertices(), strict=True), color=REGION, zorder=1)
    meeting = region.corner()
    lower = [(0.0, 1.0), meeting, (1.0, 0.0)]
    axes.plot(*zip(*lower, strict=True), color=BOUND, linewidth=2.4, zorder=3)
    upper = [(1.0 - alarm, 1.0 - missed) for alarm, missed in lower]
    axes.plot(*zip(*upper, strict=True), color=BOUND, linewidth=1.2, linestyle="--", zorder=3)
    axes.plot(*meeting, marker="o", markersize=8, color=BOUND, clip_on=False, zorder=4)


def draw_boundary(axes: Axes, boundary: tuple[Errors, ...], *, color: str, label: str) -> None:
    """Draw the best tests of a channel."""
    axes.plot(
        *zip(*((float(alarm), float(missed)) for alarm, missed in boundary), strict=True),
        color=color,
        linewidth=1.7,
        marker="s",
        markersize=5,
        clip_on=False,
        zorder=5,
        label=label,
    )


def write(
    axes: Axes, x: float, y: float, text: str, color: str = INK, *, points: float = 11.5
) -> None:
    """Write beside a drawing, the text's lower left corner at (x, y)."""
    axes.text(x, y, text, fontsize=points, color=color, zorder=6, linespacing=1.7)


def frame(axes: Axes, title: str) -> None:
    """Give a panel its square, its axes and the line of guessing."""
    axes.plot([0, 1], [1, 0], color=GUESSING, linewidth=1, linestyle=":", zorder=2)
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axes.set_xlabel("$P_{FA}$: the test says $x$, it is $x'$", fontsize=11.5)
    axes.set_ylabel("$P_{MD}$: the test says $x'$, it is $x$", fontsize=11.5)
    axes.set_title(title, fontsize=12.5, pad=12, linespacing=1.5)
    axes.spines[["top", "right"]].set_color("#bbbbbb")


def broken_channel() -> Channel:
    """Return a channel of two values and three reports whose last report reveals too much."""
    rows = (
        {0: Fraction(55, 100), 1: Fraction(35, 100), 2: Fraction(10, 100)},
        {0: Fraction(25, 100), 1: Fraction(30, 100), 2: Fraction(45, 100)},
    )
    return Channel(rows, 3)


def figure() -> Figure:
    """Return the three panels."""
    whole = Figure(figsize=(14.4, 5.4), layout="constrained")
    two, infinite, channels = whole.subplots(1, 3)
    draw_region(two, ErrorRegion(budget(1.0), budget(2.0)))
    write(two, 0.22, 0.44, r"$e^a P_{FA} + P_{MD} \geq 1$", BOUND)
    write(two, 0.42, 0.15, r"$P_{FA} + e^b P_{MD} \geq 1$", BOUND)
    write(
        two,
        0.02,
        0.05,
        "$P_{FA} = \\frac{e^b - 1}{e^{a+b} - 1}$\n$P_{MD} = \\frac{e^a - 1}{e^{a+b} - 1}$",
        points=13.5,
    )
    frame(two, "Errors of all tests under a policy\n$a = E[x, x'] = 1$,  $b = E[x', x] = 2$")
    draw_region(infinite, ErrorRegion(None, budget(1.0)))
    write(infinite, 0.24, 0.33, r"$P_{FA} + e^b P_{MD} \geq 1$", BOUND)
    write(infinite, 0.03, 0.05, "$P_{FA} = 0,\\ P_{MD} = e^{-b}$:\na report may reveal $x$")
    write(infinite, 0.46, 0.56, "guessing", GUESSING)
    frame(infinite, "One direction unprotected\n$a = \\infty$,  $b = 1$ (Mangat)")
    region = ErrorRegion(budget(1.0), budget(1.0))
    draw_region(channels, region)
    kept = channel_boundary(L1Geometric(0.5, (3,)).channel(), 0, 2)
    broken = channel_boundary(broken_channel(), 0, 1)
    draw_boundary(channels, kept, color=KEPT, label="a channel that keeps it")
    draw_boundary(channels, broken, color=BROKEN, label="a channel that breaks it")
    outside = region.first_outside(broken)
    assert region.first_outside(kept) is None
    assert outside is not None
    channels.annotate(
        "outside: this test\nis too good",
        (float(outside[0]), float(outside[1])),
        xytext=(0.06, 0.05),
        fontsize=11.5,
        color=BROKEN,
        arrowprops={"arrowstyle": "->", "color": BROKEN, "shrinkB": 5},
        zorder=6,
    )
    frame(channels, "The best tests of two channels\npolicy $a = b = 1$")
    channels.legend(loc="upper right", fontsize=10.5, framealpha=1.0)
    return whole


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers.test_region")
    parser.add_argument("file", type=Path, help="the PNG to write")
    options = parser.parse_args()
    figure().savefig(options.file, dpi=150)
    print("E[x, x']  E[x', x]  P_FA    P_MD")
    for a, b in ((1.0, 2.0), (math.inf, 1.0), (1.0, 1.0)):
        region = ErrorRegion(*(None if math.isinf(e) else budget(e) for e in (a, b)))
        false_alarm, missed = region.corner()
        print(f"{a:8g}  {b:8g}  {false_alarm:.4f}  {missed:.4f}")


if __name__ == "__main__":
    main()
