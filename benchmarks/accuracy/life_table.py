"""The cells of `python -m benchmarks.accuracy.life`, and the table that it prints."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import bdtr

from ldpstream.estimators.bounds.options import Estimand

LEVEL: Final = 0.95
CONSERVATIVE: Final = 0.97


@dataclass(frozen=True)
class Cell:
    """One query in one setting, and how many of r repetitions its bounds hold."""

    rule: str
    mechanism: str
    changing: bool
    newcomers: bool
    epsilon: float
    estimand: Estimand
    query: str
    covered: int
    repetitions: int

    @property
    def coverage(self) -> float:
        """The share of repetitions."""
        return self.covered / self.repetitions

    def fails(self, cells: int) -> bool:
        """Return whether that is too few, of this many cells."""
        return bool(bdtr(self.covered, self.repetitions, LEVEL) < 0.05 / cells)


def print_table(found: Sequence[Cell], of_all: int) -> int:
    """Print a row for each rule and estimand, and the cells that fail; return how many do."""
    failed = [cell for cell in found if cell.fails(of_all)]
    print("| rule | estimand | cells | lowest | mean | highest | above 0.97 |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for rule, estimand in dict.fromkeys((cell.rule, cell.estimand) for cell in found):
        of = [cell for cell in found if (cell.rule, cell.estimand) == (rule, estimand)]
        each = np.array([cell.coverage for cell in of])
        wide = int((each > CONSERVATIVE).sum())
        mark = ", conservative" if each.mean() > CONSERVATIVE else ""
        ends = f"{each.min():.3f} | {each.mean():.3f} | {each.max():.3f}"
        print(f"| {rule} | `{estimand}` | {len(of)} | {ends} | {wide}{mark} |")
    print(f"\n{len(found):,} of {of_all:,} cells, {len(failed)} below {LEVEL} (Bonferroni at 5%)")
    for cell in sorted(found, key=lambda cell: cell.covered)[: max(5, len(failed))]:
        kind = "changing" if cell.changing else "stable"
        late = ", newcomers" if cell.newcomers else ""
        print(
            f"  {cell.coverage:.3f} {cell.rule}, {cell.mechanism}, {cell.epsilon:g}, {kind}{late}: "
            f"{cell.estimand}, {cell.query}"
        )
    return len(failed)
