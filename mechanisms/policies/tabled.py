"""Policies as exact JSON, as a channel file states what its channel keeps."""

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from ldpstream.mechanisms.base.checks import describe, is_whole, read_epsilon
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.policies.graph import GraphPolicy
from ldpstream.mechanisms.policies.matrix import MatrixPolicy
from ldpstream.mechanisms.policies.policy import Policy
from ldpstream.mechanisms.policies.prior import PriorPolicy

MAX_MATRIX_VALUES = 64
_MAX_GRAPH_VALUES = 256
_MAX_LIP_VALUES = 512
_MOST_VALUES: Final[Mapping[type[Policy], int]] = {
    PriorPolicy: _MAX_LIP_VALUES,
    MatrixPolicy: MAX_MATRIX_VALUES,
}
"""The most values of policies that files hold as they are."""
_FRACTION = re.compile(r"[0-9]+(/[0-9]*[1-9][0-9]*)?")


def tabled(policy: Policy) -> Policy:
    """Return a policy with the same budgets in a form that files hold: matrix, graph or prior.

    A policy that some of its pairs imply (`Policy.pairs`) becomes the graph of these pairs.

    Raises:
        SpecError: if it has more values than a channel file may hold in this form.
    """
    if most := _MOST_VALUES.get(type(policy)):
        return _checked(policy, most)
    _checked(policy, _MAX_GRAPH_VALUES)
    edges = tuple(sorted(policy.constraints()))
    if len(edges) <= MAX_MATRIX_VALUES**2 and sum(1 for _ in policy.pairs()) < _pairs(policy.size):
        return GraphPolicy(policy.size, edges, directed=True)
    _checked(policy, MAX_MATRIX_VALUES)
    return MatrixPolicy(tuple(map(tuple, policy.listed())))


def read_policy_document(raw: object) -> Policy:
    """Return the policy of a document that `Policy.document` wrote.

    Raises:
        SpecError: if the document is invalid or has more values than a channel file may hold; paths
            begin with `policy`.
    """
    if not isinstance(raw, Mapping) or raw.get("kind") not in ("lip", "graph", "matrix"):
        raise SpecError("policy", "a table of the kind lip, graph or matrix")
    kind = raw["kind"]
    if kind == "lip":
        return _checked(_prior_policy(raw), _MAX_LIP_VALUES)
    if kind == "graph":
        size = raw.get("size")
        if not is_whole(size):
            raise SpecError("policy.size", f"a whole number, got {describe(size)}")
        edges = tuple(_edge(edge) for edge in _list(raw.get("edges"), "edges"))
        return _checked(GraphPolicy(size, edges, directed=True), _MAX_GRAPH_VALUES)
    rows = [
        tuple(_fraction(entry, "policy.budgets") for entry in _list(row, "budgets"))
        for row in _list(raw.get("budgets"), "budgets")
    ]
    return _checked(MatrixPolicy(tuple(rows)), MAX_MATRIX_VALUES)


def _prior_policy(table: Mapping[str, object]) -> PriorPolicy:
    epsilon = read_epsilon(table.get("epsilon"), "policy.epsilon")
    shares = [_fraction(share, "policy.prior") for share in _list(table.get("prior"), "prior")]
    return PriorPolicy(epsilon, tuple(share or Fraction(0) for share in shares))


def _checked(policy: Policy, most: int) -> Policy:
    if policy.size > most:
        raise SpecError("policy", f"at most {most} values of this form, got {policy.size}")
    return policy


def _pairs(size: int) -> int:
    return size * (size - 1)


def _list(raw: object, key: str) -> list[object]:
    if not isinstance(raw, list):
        raise SpecError(f"policy.{key}", f"a list, got {describe(raw)}")
    return raw


def _edge(raw: object) -> tuple[int, int, Fraction]:
    if isinstance(raw, list) and len(raw) == 3 and is_whole(raw[0]) and is_whole(raw[1]):
        length = _fraction(raw[2], "policy.edges")
        if length is not None:
            return raw[0], raw[1], length
    raise SpecError("policy.edges", f"edges of two values and a budget, got {describe(raw)}")


def _fraction(raw: object, path: str) -> Fraction | None:
    """Return an exact number of at least 0; None for "inf"."""
    if raw == "inf":
        return None
    # No exponents: "1e999999999" would take a billion digits.
    if isinstance(raw, str) and len(raw) <= 1000 and _FRACTION.fullmatch(raw):
        return Fraction(raw)
    raise SpecError(path, f'fractions such as "1/2", got {describe(raw)}')
