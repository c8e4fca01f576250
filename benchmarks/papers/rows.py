"""The rows of `python -m benchmarks.papers`: the papers' figures and tables, theirs and ours."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.papers import ca_figure2, gowalla_offline, lip_theory
from benchmarks.papers.lip_curves import (
    Curve,
    Users,
    context_free_curve,
    curve,
    equal_flips,
    optimum,
    randomised_response,
)
from benchmarks.papers.lip_figures import GOWALLA, KOSARAK, popular_pages, travellers
from benchmarks.papers.ml_errors import (
    KINDS,
    exact_variances,
    largest_variance,
    measured_errors,
    measured_inside,
    paper_expression,
)
from ldpstream.estimators.planning.predictions import predicted_set_variances, prefix_bound
from ldpstream.mechanisms.channels.error_region import ErrorRegion
from ldpstream.mechanisms.channels.information import most_information, mutual_information
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.exact.dyadic import budget
from ldpstream.mechanisms.families.binary import Binary
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from ldpstream.mechanisms.families.design.projective_geometry import ProjectiveGeometry
from ldpstream.mechanisms.families.groups.high_low import HighLow
from ldpstream.mechanisms.families.groups.mechanism import sensitive_groups
from ldpstream.mechanisms.families.lip.domain import Prior
from ldpstream.mechanisms.families.lip.lip import Lip
from ldpstream.mechanisms.families.matrix.matrix import Matrix
from ldpstream.mechanisms.families.matrix.strategy import Strategy
from ldpstream.mechanisms.families.subset.selection import SubsetSelection
from ldpstream.mechanisms.interface.mechanism import Mechanism
from ldpstream.mechanisms.policies.metric import MetricPolicy

GRID = "gowalla_us_grid_counts_reconstructed.npz"
ORDER = "theirs violates its bound, so eps/2-LIP seems below eps-LDP"


@dataclass(frozen=True)
class Row:
    """One setting of a figure, table or theorem: what the paper has, and what the library has."""

    item: str
    setting: str
    quantity: str
    theirs: str
    ours: str
    remark: str = ""


def all_rows(data: Path | None, *, quick: bool) -> Iterator[Row]:
    """Yield the rows of all three papers; those about data need the folder with it."""
    yield from _error_region()
    yield from _high_low()
    yield from _blocks()
    yield from _figure_2(quick=quick)
    yield from _table_1(data, quick=quick)
    yield from _linear_counting()
    yield from _ranges(quick=quick)
    yield from _information()
    yield from _optimum_of_lip()
    yield from _lip_figures(data, quick=quick)


def _error_region() -> Iterator[Row]:
    a, b = 1.0, 2.0
    alarm, missed = ErrorRegion(budget(a), budget(b)).corner()
    theirs = f"{alarm:.4f}, {alarm:.4f}"
    remark = "the appendix prints the first formula twice"
    what = "P_FA, P_MD of the corner"
    yield Row("[CA] Fig. 1, Thm 1", "a 1, b 2", what, theirs, f"{alarm:.4f}, {missed:.4f}", remark)
    q = (1 - math.exp(-a)) / (math.exp(b) - math.exp(-a))
    table = Binary(a, b).table
    assert table is not None
    yield Row(
        "[CA] Thm 2",
        "a 1, b 2",
        "P(2|1), P(2|2)",
        f"{q:.6f}, {math.exp(b) * q:.6f}",
        f"{table[0, 1]:.6f}, {table[1, 1]:.6f}",
    )


def _total(mechanism: Mechanism) -> float:
    """Return the sum of all values' variances, of one report at uniform shares."""
    singles = ([x] for x in range(mechanism.size))
    return float(predicted_set_variances(mechanism, map(np.array, singles)).sum())


def _high_low() -> Iterator[Row]:
    for k, s, epsilon in ((12, 6, 0.5), (12, 6, 1.0), (100, 30, 2.0), (12, 6, 4.0)):
        sensitive = frozenset(range(s))
        theirs = _total(HighLow(epsilon, k, sensitive))
        ours = _total(sensitive_groups(epsilon, k, sensitive))
        yield Row(
            "[CA] Thm 3, Alg. high-low",
            f"k {k}, s {s}, eps {epsilon:g}",
            "total variance of a report",
            f"{theirs:.4f}",
            f"{ours:.4f}",
            f"high-low against groups: {theirs / ours:.2f} times",
        )


def _blocks() -> Iterator[Row]:
    k, n = 1000, 100_000
    c = 1 / math.tanh(0.5)
    for count in (1, 10, 100):
        blocks = Blocks(np.arange(k) * count // k)
        width = k // count
        exact = math.sqrt(k * (c**2 / count - 1 / k) / n / k)
        bound = 2 * c * math.sqrt(3 * count * width**2 / n)
        subsets = _total(SubsetSelection(1.0, blocks)) if width <= 100 else math.nan
        best = min(x for x in (_total(ProjectiveGeometry(1.0, blocks)), subsets) if x == x)
        yield Row(
            "[CA] Thm 4",
            f"k {k}, blocks {count}, eps 1, n {n}",
            "E[TV] at most",
            f"{bound:.3f}",
            f"{k * exact / 2:.3f}; {math.sqrt(best * k / n) / 2:.3f}",
            "exact: block-hadamard; the best design",
        )


def _figure_2(*, quick: bool) -> Iterator[Row]:
    number = 1000 if quick else ca_figure2.NUMBERS[-1]
    repetitions = 1 if quick else ca_figure2.REPETITIONS
    c = 1 / math.tanh(ca_figure2.EPSILON / 2)
    for name, shares in ca_figure2.distributions().items():
        (distances,) = ca_figure2.measure(name, shares, (number,), repetitions)
        for blocks, distance in zip(ca_figure2.BLOCKS, distances.tolist(), strict=True):
            theirs = 2 * c * ca_figure2.SIZE * math.sqrt(3 / (blocks * number))
            yield Row(
                "[CA] Fig. 2",
                f"{name}, blocks {blocks}, n {number}",
                "mean TV",
                f"< {theirs:.3f}",
                f"{distance:.4f}",
                "theirs: the bound of Theorem 4",
            )


def _table_1(data: Path | None, *, quick: bool) -> Iterator[Row]:
    repetitions = 1 if quick else 10
    for blocks, theirs in gowalla_offline.PUBLISHED.items():
        ours, remark = "-", f"needs --data with {GRID}"
        if data is not None:
            counts = gowalla_offline.load(data / GRID)
            if quick:
                counts //= 40
            found = [
                gowalla_offline.errors(counts, blocks, seed, kind=kind)
                for kind in (BlockHadamard, ProjectiveGeometry)
                for seed in range(repetitions)
            ]
            plain, best = np.mean(found[:repetitions], axis=0), np.mean(found[repetitions:], axis=0)
            ours = f"{plain[0]:.3f}; {plain[1]:.3f}; {best[1]:.3f}"
            remark = "on the simplex; each block's total known; projective geometry"
        setting = f"{blocks[0]} x {blocks[1]} blocks, eps 1"
        yield Row("[CA] Table 1", setting, "TV of Gowalla", f"{theirs:.3f}", ours, remark)


def _linear_counting() -> Iterator[Row]:
    m, epsilon = 64, 1.0
    # Of the m (m + 1)/2 ranges, m - 1 twice have one noisy end, one none, the others two.
    ends = 2 * (m * (m + 1) // 2) - 2 * m
    theirs = ends * 2 / epsilon**2 / (m * (m + 1) // 2)
    mechanism = Matrix(MetricPolicy(epsilon, (m,)), Strategy.built_in("prefix", m))
    ranges = [np.arange(low, high + 1) for low in range(m) for high in range(low, m)]
    ours = float(predicted_set_variances(mechanism, ranges).mean())
    geometric = KINDS[1](epsilon, (m,))
    best = float(predicted_set_variances(geometric, ranges).mean())
    yield Row(
        "[ML] Sec. III, Thm 1",
        f"ranges, m {m}, eps 1",
        "mean variance of a report",
        f"{theirs:.4f}",
        f"{ours:.4f}; {best:.4f}",
        "matrix with discrete noise, as continuous noise leaks; l1-geometric",
    )


def _ranges(*, quick: bool) -> Iterator[Row]:
    shapes: tuple[tuple[int, ...], ...] = ((4096,), (64, 64), (16, 16, 16))
    users, repetitions = (1000, 1) if quick else (100_000, 3)
    for dimensions, shape in enumerate(shapes, 1):
        theirs = paper_expression(1.0, dimensions)
        for kind in KINDS:
            exact = exact_variances(kind, 1.0, shape)
            measured = measured_errors(kind, 1.0, shape, users, repetitions, 1)
            for name in ("values", "ranges"):
                means = [float(getattr(errors, name).mean()) for errors in (exact, measured)]
                yield Row(
                    "[ML] Fig. 1",
                    f"{' x '.join(map(str, shape))}, eps 1, n {users}, {name}",
                    "mean squared error a user",
                    f"{theirs:.4g}",
                    f"{means[0]:.4g}; {means[1] / users:.4g}",
                    f"{kind.id}: exact; measured, {repetitions} repetitions",
                )
        inside = measured_inside(1.0, dimensions, 100, 100 if quick else 2000, dimensions)
        yield Row(
            "[ML] Thm 2, 3",
            f"D {dimensions}, eps 1, all users inside",
            "variance a user",
            f"{theirs:.4g}",
            f"{largest_variance(1.0, dimensions):.4g}; {inside:.4g}",
            "exact; measured. Theirs is no bound" if dimensions > 1 else "exact; measured",
        )
    m, n, c = 1024, 100_000, 1 / math.tanh(0.5)
    theirs = 2 * c * math.sqrt(2 / n * math.log(2 * math.log2(m) / 0.05))
    yield Row(
        "[ML] Thm 4",
        f"m {m}, eps 1, n {n}, 95%",
        "error of a quantile at most",
        f"{theirs:.4f}",
        f"{prefix_bound(c, m - 1, n, 0.95):.4f}",
        "over all prefixes at once, since those visited depend on the reports",
    )


def _information() -> Iterator[Row]:
    for prior, epsilon in ((0.5, 1.0), (0.1, 1.0), (0.1, 3.0)):
        table = Lip(Prior(prior), (epsilon,)).table
        assert table is not None
        found = mutual_information(table, np.array([1 - prior, prior]))
        yield Row(
            "[LIP] Prop. 1",
            f"P {prior:g}, eps {epsilon:g}",
            "mutual information, nats",
            f"<= {epsilon:g}",
            f"<= {most_information(epsilon):.4f}; {found:.4f}",
            "bound of every channel; of lip",
        )


def _optimum_of_lip() -> Iterator[Row]:
    for prior, epsilon in ((0.5, 1.0), (0.1, 1.0), (0.01, 1.0)):
        q, r = (t / 2**64 for t in Lip(Prior(prior), (epsilon,)).thresholds[0])
        flips = lip_theory.Flips(np.array(q), np.array(1 - r))
        paper = lip_theory.paper_lip(prior, epsilon)
        losses = [float(lip_theory.realised_loss(prior, each)) for each in (paper, flips)]
        yield Row(
            "[LIP] Fig. 1, 2, Thm 2",
            f"P {prior:g}, eps {epsilon:g}",
            "q0, q1; realised loss",
            f"{float(paper.zero):.4f}, {float(paper.one):.4f}; {losses[0]:.3f}",
            f"{q:.4f}, {1 - r:.4f}; {losses[1]:.3f}",
            "" if losses[0] <= epsilon + 1e-9 else "theirs violates the bound it is to keep",
        )
    error = 100 * float(lip_theory.opt_lip_error(0.1, 1.0))
    free = 100 * float(lip_theory.context_free_error(1.0))
    yield Row(
        "[LIP] Example 1",
        "N 100, P 0.1, eps 1",
        "E of LIP, of LDP",
        "garbled",
        f"{error:.2f}, {free:.1f}",
    )


def figure_curves(users: Users, epsilons: np.ndarray) -> dict[str, Curve]:
    """Return the right curves of Figures 5 to 8, and the paper's, by a short name."""
    return {
        "Opt-LIP": curve("", users, epsilons, optimum),
        "Opt-LDP": curve("", users, epsilons, randomised_response),
        "context-free": context_free_curve(epsilons),
        "eps/2-LIP": curve("", users, epsilons, optimum, part=0.5),
        "eps/2-symmetric": curve("", users, epsilons, equal_flips, part=0.5),
        "paper": curve("", users, epsilons, lip_theory.paper_lip),
        "paper eps/2": curve("", users, epsilons, lip_theory.paper_lip, part=0.5),
    }


def _lip_figures(data: Path | None, *, quick: bool) -> Iterator[Row]:
    rng = np.random.default_rng(1)
    number = 1000 if quick else 50_000
    settings: list[tuple[str, str, Users, tuple[float, ...]]] = [
        ("[LIP] Fig. 5", f"P {prior:g}", Users.right(np.array([prior])), (1.0, 3.0, 5.0))
        for prior in (0.5, 0.99)
    ]
    settings += [
        ("[LIP] Fig. 6", f"P {prior:g}", Users.right(np.array([prior])), (1.0, 2.0, 4.0, 8.0))
        for prior in (0.5, 0.01)
    ]
    uniform = Users.right(rng.uniform(0.0, 1.0, number))
    settings.append(("[LIP] Fig. 7", f"N {number}", uniform, (2.0, 4.0)))
    if data is not None:
        for item, users in (
            ("[LIP] Fig. 8a", popular_pages(data)),
            ("[LIP] Fig. 8b", travellers(data)),
        ):
            settings.append((item, "bits as priors", Users.right(users.priors), (2.0, 4.0)))
    for item, setting, users, epsilons in settings:
        curves = figure_curves(users, np.array(epsilons))
        for place, epsilon in enumerate(epsilons):
            roots = {name: float(one.root[place]) for name, one in curves.items()}
            paper = curves["paper"], curves["paper eps/2"]
            broken = any(one.broken[place] > 0.0 for one in paper)
            ours = [f"{roots[name]:.6f}" for name in list(roots)[:5]]
            yield Row(
                item,
                f"{setting}, eps {epsilon:g}",
                "sqrt(E/N): " + ", ".join(list(roots)[:5]),
                f"{roots['paper']:.6f}; eps/2: {roots['paper eps/2']:.6f}",
                ", ".join(ours),
                ORDER if broken else "",
            )
    if data is None:
        for item, name in (("[LIP] Fig. 8a", KOSARAK), ("[LIP] Fig. 8b", GOWALLA)):
            yield Row(item, "", "sqrt(E/N)", "", "-", f"needs --data with {name}")
