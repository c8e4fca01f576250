"""The table of `python -m benchmarks.papers`, and the curves of [LIP] that are right."""

import re
from itertools import pairwise

import numpy as np
import pytest
from benchmarks.papers.lip_curves import Users
from benchmarks.papers.rows import all_rows, figure_curves

TABLE = """
.5, 1  .387435 .443409 .959517 .459669 .459669 .387435 .459669
.5, 2  .251175 .324027 .425459 .387435 .387435 .251175 .387435
.99, 1 .098951 .098968 .959517 .099370 .099371 .077099 .091473
.01, 1 .098951 .098968 .959517 .099370 .099371 .077099 .091473
.01, 2 .096683 .096885 .425459 .098951 .098961 .049983 .077099
.01, 4 .068105 .080680 -       .096683 .096856 -       .049983
.01, 8 .002577 .018019 -       .068105 .080538 -       .018956
"""
"""The curves of `figure_curves` in their order, at P and epsilon."""


@pytest.mark.parametrize("line", TABLE.strip().splitlines())
def test_the_curves_of_figures_5_and_6(line: str):
    prior, epsilon, *roots = re.split(r",?\s+", line)
    users = Users.right(np.array([float(prior)]))
    curves = figure_curves(users, np.array([float(epsilon)]))
    for one, root in zip(curves.values(), roots, strict=True):
        if root != "-":
            assert one.root[0] == pytest.approx(float(root), abs=6e-7)


def test_the_curves_of_figure_7_and_their_order():
    middles = (np.arange(40_000) + 0.5) / 40_000
    curves = figure_curves(Users.right(middles), np.array([2.0, 4.0]))
    table = {
        "Opt-LDP": (0.284949, 0.127357),
        "Opt-LIP": (0.213542, 0.078442),
        "eps/2-LIP": (0.331216, 0.213542),
        "eps/2-symmetric": (0.348652, 0.253773),
    }
    for name, roots in table.items():
        assert curves[name].root == pytest.approx(roots, abs=2e-6)
    order = ("eps/2-symmetric", "eps/2-LIP", "Opt-LDP", "Opt-LIP")
    epsilons = np.arange(0.5, 10.01, 0.5)
    for prior in (0.5, 0.3, 0.1, 0.01, 0.99):
        lines = figure_curves(Users.right(np.array([prior])), epsilons)
        roots_in_order = [lines[name].root for name in order]
        for above, below in pairwise(roots_in_order):
            assert (above >= below * (1 - 1e-9)).all()


def test_every_figure_and_table_has_rows():
    rows = list(all_rows(None, quick=True))
    items = ("[CA] Fig. 1", "[CA] Fig. 2", "[CA] Table 1", "[ML] Fig. 1")
    items += tuple(f"[LIP] Fig. {number}" for number in ("1, 2", 5, 6, 7, "8a", "8b"))
    for item in items:
        assert any(row.item.startswith(item) for row in rows), item
    ours = {(row.item, row.setting): row.ours for row in rows}
    assert ours["[LIP] Example 1", "N 100, P 0.1, eps 1"] == "7.91, 92.1"
    assert ours["[CA] Fig. 1, Thm 1", "a 1, b 2"] == "0.3348, 0.0900"
    assert ours["[ML] Thm 2, 3", "D 2, eps 1, all users inside"].startswith("7.073;")
    theirs = {row.setting: row.theirs for row in rows if row.item == "[ML] Thm 2, 3"}
    assert theirs["D 2, eps 1, all users inside"] == "5.232"
