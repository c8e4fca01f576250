"""The rows that `python -m benchmarks.accuracy.coverage` prints, and the worst of them."""

import math
from dataclasses import dataclass
from itertools import groupby

from ldpstream.estimators.bounds.options import Estimand, Method

NORMAL_TARGET = (0.93, 0.97)
LEAST_COVERAGE = 0.95
WORST = 5
MOSTLY = "mostly"
"""Sets with few respondents expected outside: they have no target."""


@dataclass(frozen=True)
class Row:
    """Coverage of one kind of bounds: `least` and `largest` over the queries, or together."""

    case: str
    kind: str
    estimand: Estimand
    method: Method
    together: bool
    queries: int
    least: float
    largest: float
    repetitions: int

    @property
    def scope(self) -> str:
        """Whether coverage is that of each query or of all together."""
        return "together" if self.together else "each"

    @property
    def target(self) -> tuple[float, float]:
        """The least and largest coverage that meets the target."""
        if self.kind == MOSTLY:
            return 0.0, 1.0
        error = math.sqrt(LEAST_COVERAGE * (1.0 - LEAST_COVERAGE) / self.repetitions)
        if self.method == "normal" and not self.together and self.kind != "quantiles":
            least, largest = NORMAL_TARGET
            return least - error, largest + error
        return LEAST_COVERAGE - 4.0 * error, 1.0

    @property
    def met(self) -> bool:
        """Whether the coverage meets the target."""
        least, largest = self.target
        return least <= self.least and self.largest <= largest

    def __str__(self) -> str:
        """Return the row of the table."""
        told = f"{self.least:.4f}"
        if not self.together:
            told += f" {self.largest:.4f}"
        return (
            f"{self.case} {self.kind:9} {self.estimand:11} {self.method:9} {self.scope:8} "
            f"{self.queries:5} {told}{'' if self.met else '  MISSED'}"
        )


def print_worst(rows: list[Row]) -> None:
    """Print, for each kind of bounds, the rows nearest to missing their targets."""
    print("\nWorst cases")

    def kind(row: Row) -> tuple[str, str, bool]:
        return row.kind, row.method, row.together

    for (name, method, together), group in groupby(sorted(rows, key=kind), kind):
        members = list(group)
        print(f"\n{name}, {method}, {'together' if together else 'each'}: {len(members)} rows")
        lowest = sorted(members, key=lambda row: row.least)[:WORST]
        highest = [row for row in members if row.largest > row.target[1]]
        for row in [*lowest, *(row for row in highest if row not in lowest)]:
            print(row)
