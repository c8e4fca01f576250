"""Aggregation by pure-LDP and multi-freq-ldpy, run in an environment that has them.

    PYTHON benchmarks/engine/ldp_peers.py REPORTS.npy VALUES EPSILON

Prints a line of JSON each: library, protocol, reports, processor seconds, estimate included.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI
from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client
from pure_ldp.frequency_oracles.direct_encoding import DEServer
from pure_ldp.frequency_oracles.hadamard_response import (
    HadamardResponseClient,
    HadamardResponseServer,
)
from pure_ldp.frequency_oracles.unary_encoding import UEServer

_FEW = 2_000


def main() -> None:
    file, values, epsilon = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    reports = np.load(file).tolist()
    rng = np.random.default_rng(1)
    some = rng.integers(0, values, min(_FEW, len(reports))).tolist()
    unary = [UE_Client(value, values, epsilon, True) for value in some]
    _measure("pure-LDP", "randomized-response", reports, _pure(DEServer(epsilon, values)))
    _measure(
        "multi-freq-ldpy",
        "randomized-response",
        reports,
        lambda given: GRR_Aggregator_MI(given, values, epsilon),
    )
    server = HadamardResponseServer(epsilon, values)
    client = HadamardResponseClient(epsilon, values, server.get_hash_funcs())
    hadamard = [client.privatise(value + 1) for value in some]
    _measure("pure-LDP", "Hadamard response", hadamard * (len(reports) // len(some)), _pure(server))
    unary_server = UEServer(epsilon, values, use_oue=True)
    _measure("pure-LDP", "optimised unary encoding", unary, _pure(unary_server))
    _measure(
        "multi-freq-ldpy",
        "optimised unary encoding",
        unary,
        lambda given: UE_Aggregator_MI(given, epsilon, True),
    )


def _pure(server: Any) -> Callable[[Sequence[Any]], object]:
    def aggregate(reports: Sequence[Any]) -> object:
        for report in reports:
            server.aggregate(report)
        return server.estimate(1)

    return aggregate


def _measure(
    library: str,
    protocol: str,
    reports: Sequence[Any],
    aggregate: Callable[[Sequence[Any]], object],
) -> None:
    begun = time.process_time()
    aggregate(reports)
    print(json.dumps([library, protocol, len(reports), time.process_time() - begun]), flush=True)


if __name__ == "__main__":
    main()
