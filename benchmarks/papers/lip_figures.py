"""Figures 5 to 8 of Jiang, Li, Tandon 2018, corrected.

    python -m benchmarks.papers.lip_figures [DATA]

Needs extra `plots`. Prints a table for each panel and draws all into one picture. Every number is
exact (`benchmarks.papers.lip_curves`), `sqrt(E/N)` of the sum's estimate, as in the paper:

- Fig. 5: the optimum, and the best channel with equal flips; P = 0.5 and 0.99, epsilon 1 to 5.
- Fig. 6: eps-LIP and eps/2-LIP against eps-LDP, decoded with and without the prior; P = 0.5, 0.01.
- Fig. 7: the same for N = 5, 500 and 50,000 users with priors uniform on [0, 1] (ours are seeded).
- Fig. 8a: Kosarak, a page is a user, X = 1 with enough clicks, one prior for all. The threshold is
  15,000 clicks in the full file; our data hold the first 100,000 sessions, a tenth, so 1,500.
- Fig. 8b: Gowalla, a person's prior is the share of earlier check-ins inside the region, X = 1 if
  the last one is. Ours is New York, not the paper's UK region. Shares of 0 and 1 are no priors:
  smoothed as (k + 1/2)/(n + 1). DATA is the folder with both files; without it 8 is left out.

Both panels of 8 come twice: in expectation over bits drawn from the priors, which the theory is
about, and for the bits of the data, for which nothing is proved. There 8b shows the bias of wrong
priors, and in 8a, whose prior is the share of these same bits, ignoring all reports is exact.

"Theorem 2" is the paper's channel; a cross (in tables `*`) marks points where it violates the bound
that it is meant to keep for at least one user: such points are no mechanism. They are why the
paper's figures show eps/2-LIP below eps-LDP. The correct curves are in the order that
docs/theory.md section 7 proves: eps/2-LIP above eps-LDP above eps-LIP.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from tests.seeded import SeededEntropy

from benchmarks.papers.lip_curves import (
    Curve,
    Users,
    context_free_curve,
    curve,
    equal_flips,
    levels_curve,
    optimum,
    randomised_response,
)
from benchmarks.papers.lip_theory import paper_lip, symmetric_lip
from ldpstream.estimators.lip.calibration import calibrate
from ldpstream.mechanisms.families.lip.domain import Prior
from ldpstream.mechanisms.families.lip.lip import Lip

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

SEED = 1
CLICKS = 1500
KOSARAK, GOWALLA = "kosarak_prefix100k_counts.npz", "gowalla_nyc_local_priors.npz"
STYLES = {
    "eps-LIP": ("tab:blue", "-"),
    "eps-LIP, 64 levels": ("tab:cyan", (0, (1, 1))),
    "eps-LIP, symmetric": ("tab:purple", "-."),
    "eps-LIP, Theorem 2": ("tab:blue", ":"),
    "eps/2-LIP": ("tab:orange", "-"),
    "eps/2-LIP, symmetric": ("tab:orange", "-."),
    "eps/2-LIP, Theorem 2": ("tab:orange", ":"),
    "eps-LDP": ("black", "-"),
    "eps-LDP, context-free": ("grey", "--"),
}


@dataclass(frozen=True)
class Panel:
    """One diagram: curves over the same epsilons."""

    title: str
    epsilons: Floats
    curves: Sequence[Curve]


def symmetry_panel(prior: float) -> Panel:
    """Return a panel of Figure 5."""
    users, epsilons = Users.right(np.array([prior])), np.arange(1.0, 5.01, 0.5)
    curves = [
        curve("eps-LIP", users, epsilons, optimum),
        curve("eps-LIP, symmetric", users, epsilons, symmetric_lip),
        curve("eps-LIP, Theorem 2", users, epsilons, paper_lip),
    ]
    return Panel(f"Fig. 5: P = {prior}", epsilons, curves)


def comparison_panel(title: str, users: Users, *, local: bool) -> Panel:
    """Return a panel of Figures 6 to 8: eps-LIP, eps/2-LIP and eps-LDP."""
    epsilons = np.arange(0.0, 10.01, 0.5)
    curves = [
        curve("eps-LIP", users, epsilons, optimum),
        curve("eps/2-LIP", users, epsilons, optimum, part=0.5),
        curve("eps/2-LIP, symmetric", users, epsilons, equal_flips, part=0.5),
        curve("eps-LDP", users, epsilons, randomised_response),
        context_free_curve(epsilons),
        curve("eps-LIP, Theorem 2", users, epsilons, paper_lip),
        curve("eps/2-LIP, Theorem 2", users, epsilons, paper_lip, part=0.5),
    ]
    if local:
        curves.insert(1, levels_curve(users, epsilons))
    return Panel(title, epsilons, curves)


def popular_pages(data: Path) -> Users:
    """Return the pages of Kosarak: who is popular, and one prior, the share of the popular."""
    with np.load(data / KOSARAK) as file:
        bits = (file["counts"] > CLICKS).astype(np.float64)
    return Users(np.full(bits.size, bits.mean()), bits)


def travellers(data: Path) -> Users:
    """Return the people of Gowalla: who was last inside the region, and their smoothed priors."""
    with np.load(data / GOWALLA) as file:
        earlier = file["n_earlier"].astype(np.float64)
        inside = np.rint(file["prior"] * earlier)
        bits = file["last_in_region"].astype(np.float64)
    return Users((inside + 0.5) / (earlier + 1.0), bits)


def print_panel(panel: Panel) -> None:
    """Print one panel: a row for each epsilon, for Theorem 2 with the realised loss."""
    print(f"\n{panel.title}: sqrt(E/N)")
    names = [one.name for one in panel.curves]
    print(f"{'eps':>5} " + " ".join(f"{name:>{max(len(name), 9)}}" for name in names))
    for row, epsilon in enumerate(panel.epsilons):
        cells = []
        for one in panel.curves:
            text = f"{one.root[row]:.5f}"
            if one.broken[row] > 0.0:
                text += f"*{one.loss[row]:.2f}"
            cells.append(f"{text:>{max(len(one.name), 9)}}")
        print(f"{epsilon:5.1f} " + " ".join(cells))


def draw(axes: "Axes", panel: Panel) -> None:
    """Draw one panel; crosses are points that violate their own bound."""
    finite = [one.root[np.isfinite(one.root)] for one in panel.curves if "free" not in one.name]
    top = max(float(root.max()) for root in finite)
    for one in panel.curves:
        colour, style = STYLES[one.name]
        axes.plot(panel.epsilons, one.root, color=colour, linestyle=style, label=one.name)
        broken = one.broken > 0.0
        axes.plot(panel.epsilons[broken], one.root[broken], "x", color="tab:red", markersize=6)
    axes.set(title=panel.title, xlabel="epsilon", ylabel="sqrt(E/N)", ylim=(0.0, 1.15 * top))
    axes.grid(visible=True, alpha=0.3)


def check_priors(users: Users, epsilon: float) -> None:
    """Print the verdict of the calibration test on reports of these users."""
    mechanism = Lip(Prior(levels=64), (epsilon,))
    level = np.searchsorted(mechanism.prior.edges, users.priors, side="right") - 1
    statistic = mechanism.empty()
    values = 2 * level + users.chances.astype(np.int64)
    mechanism.accumulate(statistic, mechanism.privatize(values, entropy=SeededEntropy(SEED)))
    test = calibrate(mechanism, statistic, users.priors.size)
    flagged = test.flagged.size
    print(
        f"Fig. 8b's priors, tested by reports at epsilon {epsilon:g}: p = {test.smallest:.3g}, "
        f"{flagged} of {test.level.size} levels flagged"
    )


def main() -> None:
    from matplotlib.figure import Figure

    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers.lip_figures")
    parser.add_argument("data", type=Path, nargs="?", help=f"folder with {KOSARAK} and {GOWALLA}")
    parser.add_argument("--picture", type=Path, default=Path("build/lip_figures.png"))
    options = parser.parse_args()
    rng = np.random.default_rng(SEED)
    panels = [symmetry_panel(prior) for prior in (0.5, 0.99)]
    for prior in (0.5, 0.01):
        users = Users.right(np.array([prior]))
        panels.append(comparison_panel(f"Fig. 6: P = {prior}", users, local=False))
    for number in (5, 500, 50_000):
        users = Users.right(rng.uniform(0.0, 1.0, number))
        panels.append(comparison_panel(f"Fig. 7: N = {number:,}", users, local=True))
    if options.data is not None:
        pages, people = popular_pages(options.data), travellers(options.data)
        for name, users, local in (("8a: Kosarak", pages, False), ("8b: New York", people, True)):
            expected = Users.right(users.priors)
            panels.append(comparison_panel(f"Fig. {name}, bits as priors", expected, local=local))
            panels.append(comparison_panel(f"Fig. {name}, bits of data", users, local=local))
    print("* violates its bound; the loss that it realises, at worst, is behind it")
    figure = Figure(figsize=(18, 12), layout="constrained")
    places = figure.subplots(3, 4).ravel()
    for axes, panel in zip(places, panels, strict=False):
        print_panel(panel)
        draw(axes, panel)
    for axes in places[len(panels) :]:
        axes.set_visible(False)
    if options.data is not None:
        print()
        for epsilon in (0.5, 1.0, 3.0):
            check_priors(people, epsilon)
    figure.suptitle("Error of a sum with priors. Red crosses: violates the LIP bound it claims")
    lines = {line.get_label(): line for axes in places for line in axes.get_lines()}
    named = [line for name, line in lines.items() if name in STYLES]
    figure.legend(handles=named, loc="outside lower center", ncols=8)
    options.picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(options.picture, dpi=110)
    print(f"\nwrote {options.picture}")


if __name__ == "__main__":
    main()
