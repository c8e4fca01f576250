"""`matrix` mechanisms of built-in strategies, and the queries of its workloads written out."""

import numpy as np

from ldpstream.mechanisms.families.matrix.matrix import Matrix
from ldpstream.mechanisms.families.matrix.strategy import Strategy
from ldpstream.mechanisms.policies.policy import Policy

SIZES = [2, 3, 8, 13]


def built(name: str, policy: Policy, scales: tuple[float, ...] | None = None) -> Matrix:
    return Matrix(policy, Strategy.built_in(name, policy.size), scales)


def queries(workload: str, size: int) -> np.ndarray:
    ends = [(i, j) for i in range(size) for j in range(i, size)]
    kept = {"values": lambda i, j: i == j, "prefixes": lambda i, _: i == 0}
    rows = [pair for pair in ends if kept.get(workload, lambda *_: True)(*pair)]
    return np.array([[i <= x <= j for x in range(size)] for i, j in rows], dtype=float)
