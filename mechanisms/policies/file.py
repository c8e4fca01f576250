"""Policies read from CSV files: a matrix of budgets, or the edges of a graph."""

from fractions import Fraction
from pathlib import Path

from ldpstream.mechanisms.base.checks import read_budget, read_rows
from ldpstream.mechanisms.base.errors import SpecError, ValueOutsideDomainError
from ldpstream.mechanisms.domains.base import Domain
from ldpstream.mechanisms.policies.budgets import MAX_LISTED_VALUES
from ldpstream.mechanisms.policies.graph import Edge, GraphPolicy
from ldpstream.mechanisms.policies.matrix import MatrixPolicy


def read_matrix(raw: object, base: Path, *, size: int) -> MatrixPolicy:
    """Return the matrix of a CSV file without a header: one row a line, in the domain's order.

    Budgets are decimal numbers or `inf`; the diagonal is 0. The path is relative to `base`.

    Raises:
        SpecError: naming line and column, if the file cannot be read or does not hold `size` rows
            of `size` budgets.
    """
    if size > MAX_LISTED_VALUES:
        raise SpecError("file", f"a domain of at most {MAX_LISTED_VALUES} values, got {size}")
    rows: list[tuple[Fraction | None, ...]] = []
    for where, row in read_rows(raw, base):
        if len(row) != size:
            raise SpecError(where, f"{size} budgets, one for each value, got {len(row)}")
        if len(rows) == size:
            raise SpecError(where, f"{size} rows, one for each value, got one more")
        places = [f"{where} column {column}" for column in range(1, size + 1)]
        budgets = [read_budget(text, at) for text, at in zip(row, places, strict=True)]
        if budgets[len(rows)] != 0:
            text = row[len(rows)].strip()
            raise SpecError(places[len(rows)], f"0 on the diagonal, got {text!r}")
        rows.append(tuple(budgets))
    if len(rows) != size:
        raise SpecError("file", f"{size} rows, one for each value, got {len(rows)}")
    return MatrixPolicy(tuple(rows))


def read_edges(
    raw: object, base: Path, *, domain: Domain, epsilon: Fraction | None, directed: bool = False
) -> GraphPolicy:
    """Return the graph of a CSV file without a header: one edge a line, two labels and a budget.

    A label takes one column for each dimension of the domain. If no line has a budget, each edge
    gets `epsilon`. The path is relative to `base`.

    Raises:
        SpecError: if the file cannot be read or holds no edge, a line is invalid or has other
            columns than the first, an edge joins a value to itself, or budgets are given both by
            lines and by epsilon, or by neither.
    """
    dimensions = len(domain.shape)
    edges: list[Edge] = []
    columns = 0
    for where, row in read_rows(raw, base):
        columns = columns or len(row)
        if len(row) != columns or len(row) not in (2 * dimensions, 2 * dimensions + 1):
            raise SpecError(where, f"{_columns(dimensions)}, on every line or on none")
        ends = [row[:dimensions], row[dimensions : 2 * dimensions]]
        try:
            start, end = (int(i) for i in domain.parse_columns(ends))
        except ValueOutsideDomainError as error:
            raise SpecError(f"{where} label {error.position + 1}", error.expected) from None
        if start == end:
            raise SpecError(where, "an edge between two different values")
        length = epsilon
        if len(row) > 2 * dimensions:
            length = read_budget(row[-1], f"{where} column {len(row)}", infinite=False)
        if length is None:
            raise SpecError(where, "a budget after the labels, or an epsilon for all edges")
        edges.append((start, end, length))
    if not edges:
        raise SpecError("file", "at least one edge, two labels and a budget a line, got none")
    if epsilon is not None and columns > 2 * dimensions:
        raise SpecError("file", "edges without budgets, as epsilon is that of each, got budgets")
    return GraphPolicy(domain.size, tuple(edges), directed)


def _columns(dimensions: int) -> str:
    labels = "two labels" if dimensions == 1 else f"two labels of {dimensions} columns each"
    return f"{labels}, and a budget after them"
