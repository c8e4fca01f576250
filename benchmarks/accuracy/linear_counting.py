"""Linear counting: `python -m benchmarks.accuracy.linear_counting`.

For strategies, workloads and metrics: the predicted total squared error of n respondents, the one
measured from simulated reports, the paper's formula for continuous noise, and what the best scales
save. The best strategy of each workload is marked. Then the time that devices and decoders take.
"""

import time

import numpy as np
from numpy.typing import NDArray
from tests.seeded import SeededEntropy

from benchmarks.accuracy.scales import gram_of, optimal_scales
from benchmarks.accuracy.total_error import predicted_total_error
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.exact.dyadic import budget
from ldpstream.mechanisms.families.matrix.matrix import Matrix
from ldpstream.mechanisms.families.matrix.strategy import STRATEGIES, WORKLOADS, Strategy
from ldpstream.mechanisms.policies.graph import GraphPolicy
from ldpstream.mechanisms.policies.metric import MetricPolicy
from ldpstream.mechanisms.policies.policy import BlockPolicy, Policy

SIZE, RESPONDENTS, REPETITIONS, EPSILON = 32, 96, 300, 1.0


def policies(size: int) -> dict[str, Policy]:
    """Return the metrics of the table: a step, any two values, a ring, blocks of eight."""
    ring = tuple((x, (x + 1) % size, budget(EPSILON)) for x in range(size))
    return {
        "epsilon a step": MetricPolicy(EPSILON, (size,)),
        "epsilon between all": BlockPolicy(EPSILON, Blocks.one(size)),
        "a ring": GraphPolicy(size, ring),
        "blocks of 8": BlockPolicy(EPSILON, Blocks(np.arange(size) // 8)),
    }


def measured_errors(mechanism: Matrix, seed: int) -> dict[str, float]:
    """Return the mean total squared error of each workload over the repetitions."""
    size = mechanism.size
    # Equally many respondents of every value: disclosed groups have their predicted shares.
    values = np.arange(RESPONDENTS) % size
    truth = np.bincount(values, minlength=size)
    decoder, entropy = mechanism.decoder, SeededEntropy(seed)
    errors: list[NDArray[np.float64]] = []
    for _ in range(REPETITIONS):
        statistic = mechanism.empty()
        mechanism.accumulate(statistic, mechanism.privatize(values, entropy=entropy))
        errors.append(decoder.totals(statistic) - truth)
    squares = np.stack(errors).T @ np.stack(errors) / REPETITIONS
    return {name: float((gram_of(name, size) * squares).sum()) for name in WORKLOADS}


def error_table() -> None:
    """Print predicted and measured total errors."""
    print(
        f"{SIZE} values, epsilon {EPSILON:g}, n = {RESPONDENTS}, {REPETITIONS} repetitions: total "
        "squared error of all queries\n* least predicted error with equal scales\n"
    )
    print(
        f"{'policy':20}{'workload':10}{'strategy':14}{'predicted':>12}{'measured':>12}{'ratio':>8}"
        f"{'continuous':>12}{'optimal s':>12}{'of equal':>9}{'gap':>9}"
    )
    for title, policy in policies(SIZE).items():
        built = {name: Matrix(policy, Strategy.built_in(name, SIZE)) for name in STRATEGIES}
        found = {name: measured_errors(m, seed) for seed, (name, m) in enumerate(built.items())}
        for workload in WORKLOADS:
            rows = {n: predicted_total_error(m, RESPONDENTS, workload) for n, m in built.items()}
            best = min(rows, key=rows.__getitem__)
            for name, predicted in rows.items():
                mechanism, measured = built[name], found[name][workload]
                plan = optimal_scales(policy, mechanism.strategy, workload)
                paper = predicted_total_error(mechanism, RESPONDENTS, workload, continuous=True)
                print(
                    f"{title:20}{workload:10}{name + ' *' * (name == best):14}{predicted:12.5g}"
                    f"{measured:12.5g}{measured / predicted:8.3f}{paper:12.5g}"
                    f"{plan.error * RESPONDENTS:12.5g}{plan.error / plan.uniform:9.4f}"
                    f"{plan.gap:9.1e}"
                )


def time_table() -> None:
    """Print the times of devices and decoders, and the length of a report."""
    print("\nEqual scales, epsilon 1: milliseconds\n")
    print(
        f"{'values':>7} {'policy':20}{'strategy':14}{'load':>9}{'one value':>11}{'in bulk':>9}"
        f"{'decoder':>9}{'range':>8}{'bytes':>7}"
    )
    for size in (64, 1024):
        for title, policy in list(policies(size).items())[:2]:
            for name in STRATEGIES:
                start = time.perf_counter()
                mechanism = Matrix(policy, Strategy.built_in(name, size))
                load = time.perf_counter() - start
                values = np.arange(2000) % size
                mechanism.privatize(values[:1])
                start = time.perf_counter()
                mechanism.privatize(values)
                bulk = (time.perf_counter() - start) / len(values)
                singles = []
                for value in values[:200]:
                    start = time.perf_counter()
                    mechanism.encode(mechanism.privatize(np.array([value])))
                    singles.append(time.perf_counter() - start)
                start = time.perf_counter()
                decoder = mechanism.decoder
                weights = (np.arange(size) < size // 3).astype(np.float64)
                decoder.noise(weights)
                prepared = time.perf_counter() - start
                start = time.perf_counter()
                decoder.total(weights, mechanism.empty())
                query = time.perf_counter() - start
                cells = [load, float(np.median(singles)), bulk, prepared, query]
                texts = [f"{1e3 * cell:.3g}" for cell in cells]
                print(
                    f"{size:7,} {title:20}{name:14}{texts[0]:>9}{texts[1]:>11}{texts[2]:>9}"
                    f"{texts[3]:>9}{texts[4]:>8}{mechanism.report_bytes:7,}"
                )


if __name__ == "__main__":
    error_table()
    time_table()
