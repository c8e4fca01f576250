"""Estimates by pure-LDP and multi-freq-ldpy, run in an environment that has them.

    PYTHON benchmarks/speed/estimate_peers.py FILE.npz VALUES EPSILON

The file holds the shares of each repetition, `(r, k)`, and under each protocol's name the reports
of all repetitions. Prints lines of JSON: library, protocol, estimator, milliseconds from reports to
estimates (the least processor time), root mean square error.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_IBU, GRR_Aggregator_MI
from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Aggregator_IBU, SS_Aggregator_MI
from pure_ldp.frequency_oracles.direct_encoding import DEServer
from pure_ldp.frequency_oracles.hadamard_response import HadamardResponseServer

_PROJECTED = {0: "unbiased", 2: "simplex"}


def main() -> None:
    file, values, epsilon = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    given = np.load(file)

    def measure(
        library: str, protocol: str, name: str, estimate: Callable[[Sequence[Any]], Any]
    ) -> None:
        seconds, errors = [], []
        for reports, shares in zip(given[protocol], given["shares"], strict=True):
            as_list = list(reports) if reports.ndim > 1 else reports.tolist()
            begun = time.process_time()
            found = estimate(as_list)
            seconds.append(time.process_time() - begun)
            errors.append(np.mean((np.asarray(found) - shares) ** 2))
        row = [library, protocol, name, 1e3 * min(seconds), float(np.sqrt(np.mean(errors)))]
        print(json.dumps(row), flush=True)

    for protocol, server in (
        ("randomized-response", DEServer),
        ("block-hadamard", HadamardResponseServer),
    ):
        for way, name in _PROJECTED.items():
            measure("pure-LDP", protocol, name, _pure(server, values, epsilon, way))
    for protocol, inverted, updated in (
        ("randomized-response", GRR_Aggregator_MI, GRR_Aggregator_IBU),
        ("subset-selection", SS_Aggregator_MI, SS_Aggregator_IBU),
    ):
        for name, call in (("clipped, scaled", inverted), ("iterative Bayesian", updated)):
            estimate = partial(call, k=values, epsilon=epsilon)
            measure("multi-freq-ldpy", protocol, name, estimate)


def _pure(
    kind: Callable[[float, int], Any], values: int, epsilon: float, way: int
) -> Callable[[Sequence[Any]], Any]:
    def estimate(reports: Sequence[Any]) -> Any:
        server = kind(epsilon, values)
        server.aggregate_all(reports)
        found = server.estimate_all(range(1, values + 1), suppress_warnings=True, normalization=way)
        return np.asarray(found) / server.n

    return estimate


if __name__ == "__main__":
    main()
