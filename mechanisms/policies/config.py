"""The keys that make a collection's policy: `policy` in each form, sensitive values, epsilon."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ldpstream.mechanisms.base.checks import (
    check_keys,
    describe,
    guess,
    read_budget,
    read_epsilon,
    read_rows,
)
from ldpstream.mechanisms.base.errors import SpecError, ValueOutsideDomainError, within
from ldpstream.mechanisms.base.numbers import read_decimal, trimmed
from ldpstream.mechanisms.domains.base import Domain
from ldpstream.mechanisms.domains.parse import parse_blocks
from ldpstream.mechanisms.exact.dyadic import SMALLEST_EPSILON, budget, log_bounds
from ldpstream.mechanisms.policies.budgets import MAX_LISTED_VALUES
from ldpstream.mechanisms.policies.graph import Edge, GraphPolicy
from ldpstream.mechanisms.policies.matrix import MatrixPolicy
from ldpstream.mechanisms.policies.metric import MetricPolicy, check_p
from ldpstream.mechanisms.policies.policy import BlockPolicy, HighLowPolicy, Policy
from ldpstream.mechanisms.policies.prior import PriorPolicy

_MOST_GUESSED: Final = 10_000
"""Most labels among which the one that was meant is looked for: more take seconds."""


@dataclass(frozen=True)
class PolicySettings:
    """The keys of a collection, as far as its policy is read from them.

    `path` is the collection's key path, `keys` holds the given keys as TOML parsed them, and `base`
    is the folder that files are relative to. An absent key reads as None, which TOML cannot write:
    readers refuse None like any other invalid value.
    """

    path: str
    domain: Domain
    keys: Mapping[str, object]
    base: Path

    def read_policy(self) -> Policy:
        """Return the policy of the `policy` table over the values of the domain.

        The table has one of these forms:

        - `{ file = "policy.csv" }` or `{ matrix = [[0, 1], [inf, 0]] }`: every entry, without
          epsilon.
        - `{ metric = "graph", file = "edges.csv" }`, optionally with `directed = true`: two labels
          and a budget a line, without epsilon; or two labels a line, with epsilon for each edge.
        - `{ metric = "l1" }`, `"l2"`, or `"lp"` with `p`, optionally with `scale`, one number a
          dimension: epsilon times the distance in index steps, on ordered domains. On a grid, `l1`
          connects a cell to four neighbours and `p = inf` to eight.
        - `{ blocks = ... }`, written like the domain's: epsilon inside a block, infinity between
          blocks.
        - `{ sensitive = [labels] }`: epsilon from these to all values, infinity from the others.

        Raises:
            SpecError: if it is absent or invalid.
        """
        key, raw = f"{self.path}.policy", self.keys.get("policy")
        table = raw if isinstance(raw, dict) else {}
        form = next((form for form in _FORMS if form in table), None)
        if form is None:
            meant = "".join(guess(str(written), (*_FORMS, "prior")) for written in table)
            what = f"a table with one of {', '.join(_FORMS)}, got {describe(raw)}{meant}"
            raise SpecError(key, what)
        forms = _METRICS if form == "metric" else _FORMS
        name = table[form] if form == "metric" else form
        if not isinstance(name, str) or name not in forms:
            raise SpecError(f"{key}.metric", f"one of {', '.join(forms)}, got {describe(name)}")
        read, keys = forms[name]
        check_keys(raw, keys, key)
        if read is not _lp:
            refuse_rounding(self.domain, self.path)
        return read(self, table)

    def read_prior_policy(self) -> PriorPolicy | None:
        """Return localized information privacy as `policy = { prior = [...] }` writes it.

        None if a `policy` is of another form. The prior is that of `read_shares`.
        """
        raw = self.keys.get("policy")
        if not isinstance(raw, dict) or "prior" not in raw:
            return None
        table = check_keys(raw, frozenset({"prior"}), f"{self.path}.policy")
        shares = read_shares(table["prior"], self.domain, self.base, f"{self.path}.policy.prior")
        return PriorPolicy(self.policy_epsilon(), shares)

    def read_epsilon(self) -> float:
        """Return the one finite budget.

        Raises:
            SpecError: if it is absent or invalid, or numbers are rounded at random, which requires
                a budget for each step.
        """
        refuse_rounding(self.domain, self.path)
        return read_epsilon(self.keys.get("epsilon"), f"{self.path}.epsilon")

    def read_step_epsilon(self) -> float:
        """Return the budget of one index step of an ordered domain, added over steps.

        Steps of several dimensions add up, too. This is `epsilon`; if numbers are rounded at
        random, it is `log(1 + epsilon)`, rounded down, so that numbers u and v are protected by
        `epsilon |u - v| / width` (docs/theory.md section 5).

        Raises:
            SpecError: if it is absent or not a finite number above 0.
        """
        path = f"{self.path}.epsilon"
        epsilon = read_epsilon(self.keys.get("epsilon"), path)
        if not self.domain.rounded:
            return epsilon
        step, _ = log_bounds(1 + budget(epsilon))
        if step <= 0.0:
            raise SpecError(path, f"a number of at least {SMALLEST_EPSILON}")
        return step

    def read_sensitive(self) -> frozenset[int]:
        """Return the indices of the values of the key `sensitive` (`read_sensitive`)."""
        return read_sensitive(self.keys.get("sensitive"), self.domain, f"{self.path}.sensitive")

    def policy_epsilon(self, *, step: bool = False) -> float:
        """Return the budget, or that of a `step`, which most forms of policy require."""
        if self.keys.get("epsilon") is None:
            raise SpecError(f"{self.path}.epsilon", "a number above 0 with this policy, got none")
        return self.read_step_epsilon() if step else self.read_epsilon()

    def refuse_epsilon(self) -> None:
        """Refuse an epsilon, because some forms of policy hold all budgets themselves."""
        if self.keys.get("epsilon") is not None:
            raise SpecError(
                f"{self.path}.epsilon", "no epsilon with a policy that holds the budgets itself"
            )


_Table = Mapping[str, object]


def _file(settings: PolicySettings, table: _Table) -> Policy:
    settings.refuse_epsilon()
    with within(f"{settings.path}.policy"):
        return read_matrix(table["file"], settings.base, size=settings.domain.size)


def _matrix(settings: PolicySettings, table: _Table) -> Policy:
    settings.refuse_epsilon()
    try:
        return MatrixPolicy.of(table["matrix"], size=settings.domain.size)
    except SpecError as error:
        place = error.path.removeprefix("policy")
        raise SpecError(f"{settings.path}.policy.matrix{place}", error.expected) from None


def _graph(settings: PolicySettings, table: _Table) -> Policy:
    directed = table.get("directed", False)
    key, domain = f"{settings.path}.policy", settings.domain
    if not isinstance(directed, bool):
        raise SpecError(f"{key}.directed", f"true or false, got {describe(directed)}")
    epsilon = None if settings.keys.get("epsilon") is None else budget(settings.read_epsilon())
    with within(key):
        return read_edges(
            table.get("file"), settings.base, domain=domain, epsilon=epsilon, directed=directed
        )


def _lp(settings: PolicySettings, table: _Table) -> Policy:
    key, domain, metric = f"{settings.path}.policy", settings.domain, table["metric"]
    if not domain.ordered:
        raise SpecError(
            f"{settings.path}.domain",
            f"an ordered domain with {metric} (size, sizes, grid or interval), got labels",
        )
    p = {"l1": 1, "l2": 2}.get(str(metric), table.get("p"))
    scale = _scale(table.get("scale"), f"{key}.scale")
    epsilon = settings.policy_epsilon(step=True)
    with within(key):
        return MetricPolicy(
            epsilon, domain.shape, domain.widths, domain.rounded, p=check_p(p), scale=scale
        )


def _scale(raw: object, path: str) -> tuple[float, ...] | None:
    if raw is None:
        return None
    if not isinstance(raw, list):
        raise SpecError(path, f"a list of numbers above 0, got {describe(raw)}")
    return tuple(read_epsilon(factor, f"{path}[{axis}]") for axis, factor in enumerate(raw))


def _blocks(settings: PolicySettings, table: _Table) -> Policy:
    epsilon = settings.policy_epsilon()
    key = f"{settings.path}.policy.blocks"
    return BlockPolicy(epsilon, parse_blocks(table["blocks"], settings.domain, key))


def _sensitive(settings: PolicySettings, table: _Table) -> Policy:
    epsilon = settings.policy_epsilon()
    key = f"{settings.path}.policy.sensitive"
    sensitive = read_sensitive(table["sensitive"], settings.domain, key)
    return HighLowPolicy(epsilon, settings.domain.size, sensitive)


_Reader = Callable[[PolicySettings, _Table], Policy]
_LP = (_lp, frozenset({"metric", "scale"}))
_METRICS: Mapping[str, tuple[_Reader, frozenset[str]]] = MappingProxyType(
    {
        "l1": _LP,
        "l2": _LP,
        "lp": (_lp, frozenset({"metric", "scale", "p"})),
        "graph": (_graph, frozenset({"metric", "file", "directed"})),
    }
)
_FORMS: Mapping[str, tuple[_Reader, frozenset[str]]] = MappingProxyType(
    {
        "metric": _LP,
        "file": (_file, frozenset({"file"})),
        "matrix": (_matrix, frozenset({"matrix"})),
        "blocks": (_blocks, frozenset({"blocks"})),
        "sensitive": (_sensitive, frozenset({"sensitive"})),
    }
)


def read_shares(raw: object, domain: Domain, base: Path, path: str) -> tuple[Fraction, ...]:
    """Return the known shares of a domain's values: a list, or `{ file = "prior.csv" }`.

    The file has one share a line, in the domain's order. Shares are read as the decimals that are
    written, which sum to exactly 1.
    """
    if isinstance(raw, dict):
        with within(path):
            table = check_keys(raw, frozenset({"file"}), "prior")
            rows = list(read_rows(table.get("file"), base))
            cells = [(f"{path}.{where}", row[0] if len(row) == 1 else row) for where, row in rows]
    elif isinstance(raw, list):
        cells = [(f"{path}[{place}]", share) for place, share in enumerate(raw)]
    else:
        expected = 'a list of one share a value, or { file = "prior.csv" }'
        raise SpecError(path, f"{expected}, got {describe(raw)}")
    if len(cells) != domain.size:
        raise SpecError(path, f"{domain.size:,} shares, one for each value, got {len(cells):,}")
    shares = tuple(_read_share(share, where) for where, share in cells)
    if sum(shares) != 1:
        raise SpecError(path, f"shares with the sum 1, got {float(sum(shares)):.15g}")
    return shares


def _read_share(raw: object, path: str) -> Fraction:
    is_number = isinstance(raw, int | float | str) and not isinstance(raw, bool)
    try:
        share = read_decimal(trimmed(str(raw)) if is_number else "0")
    except ValueError:
        share = Fraction(0)
    if share <= 0:
        raise SpecError(path, f"a share above 0, got {describe(raw)}")
    return share


def read_sensitive(raw: object, domain: Domain, path: str) -> frozenset[int]:
    """Return the indices of the values that a list of labels names as sensitive.

    Raises:
        SpecError: if there is none, one is listed twice, or one is outside the domain.
    """
    if not isinstance(raw, list) or not raw:
        got = "nothing" if raw is None else describe(raw)
        raise SpecError(path, f"a list of at least one value to protect, got {got}")
    try:
        indices = domain.index(raw).tolist()
    except ValueOutsideDomainError as error:
        # Labels of a configuration are no secret, unlike those that a device reports.
        label = raw[error.position]
        few = range(domain.size if isinstance(label, str) and domain.size <= _MOST_GUESSED else 0)
        meant = guess(str(label), [str(domain.label(index)) for index in few])
        what = f"{error.expected}, got {describe(label)}{meant}"
        raise SpecError(f"{path}[{error.position}]", what) from None
    if len(set(indices)) < len(indices):
        raise SpecError(path, "each value once")
    return frozenset(indices)


def refuse_rounding(domain: Domain, path: str) -> None:
    """Refuse numbers that are rounded at random, which require a budget for each step.

    `path` is the collection's key path.
    """
    if domain.rounded:
        raise SpecError(f"{path}.domain.rounding", "a mechanism with a budget for each step")


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
