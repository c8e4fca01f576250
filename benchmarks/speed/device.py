"""The cost of one report on a device: `python -m benchmarks.speed.device`.

For every mechanism on a large domain: values are privatized and framed into messages one by one,
with the operating system's entropy, and each is timed; and the bytes of a report. One process, one
core.
"""

import statistics
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ldpstream.mechanisms import MECHANISMS, CollectionSpec

REPETITIONS = 1_000
WARM_UP = 20
VECTORS = Path(__file__).parents[2] / "tests" / "vectors"
PLAIN: Mapping[str, object] = {"epsilon": 1.0}
ATTRIBUTES: Mapping[str, object] = {
    "answer": {"values": ["no", "yes"], "mechanism": "randomized-response", "epsilon": 1.0},
    "age": {"interval": [0, 100], "bins": 10, "mechanism": "tree", "epsilon": 1.0},
    "home": {"size": 4_096, "mechanism": "block-hadamard", "epsilon": 1.0},
}
CASES: dict[str, list[tuple[str, dict[str, object]]]] = {
    "binary": [("2 values", {"epsilon": [1.0, 2.0], "domain": {"values": ["no", "yes"]}})],
    "high-low": [("43,750 values", {"domain": {"size": 43_750}, "sensitive": [5, 6, 7]})],
    "block-hadamard": [("43,750 values, one block", {"domain": {"grid": [125, 350]}})],
    "randomized-response": [("43,750 values, one block", {"domain": {"grid": [125, 350]}})],
    "projective-geometry": [("43,750 values, one block", {"domain": {"grid": [125, 350]}})],
    "subset-selection": [("2,048 values, one block", {"domain": {"size": 2_048}})],
    "l1-bits": [
        ("grid 256 x 256", {"domain": {"grid": [256, 256]}}),
        ("4,096 values", {"domain": {"size": 4096}}),
    ],
    "l1-geometric": [
        ("grid 125 x 350", {"domain": {"grid": [125, 350]}}),
        ("65,536 values", {"domain": {"size": 65_536}}),
        (
            "interval, 4,096 bins, rounded",
            {"domain": {"interval": [0.0, 1.0], "bins": 4096, "rounding": "random"}},
        ),
    ],
    "lip": [("2 values, 64 priors", {"domain": {"values": [0, 1]}, "prior": {"levels": 64}})],
    "optimal": [("6 values, a graph", {"domain": {"size": 6}, "channel": "channels/graph.json"})],
    "tree": [
        ("65,536 values", {"domain": {"size": 65_536}}),
        ("grid 256 x 256", {"domain": {"grid": [256, 256]}}),
    ],
    "matrix": [
        ("1,024 values, prefixes", {"domain": {"size": 1024}, "strategy": "prefix"}),
        ("2,048 values, wavelets", {"domain": {"size": 2048}, "strategy": "haar"}),
    ],
    "sampled": [("3 attributes, one of 4,096", {"domain": {"attributes": ATTRIBUTES}})],
}


def main() -> None:
    head = (
        f"{'mechanism':22}{'domain':32}{'bytes':>6}{'median us':>11}{'99% us':>9}{'worst us':>10}"
    )
    print(head)
    for mechanism_id in MECHANISMS:
        for name, keys in CASES[mechanism_id]:
            table = {"mechanism": mechanism_id, **PLAIN, **keys}
            if "channel" in keys:
                del table["epsilon"]
            spec = CollectionSpec.from_mapping("values", table, base=VECTORS)
            median, late, worst = measure(spec)
            print(
                f"{mechanism_id:22}{name:32}{spec.mechanism.report_bytes:6}"
                f"{median:11.0f}{late:9.0f}{worst:10.0f}"
            )


def measure(spec: CollectionSpec) -> tuple[float, float, float]:
    """Return the median, the 99th percentile and the worst time of a report in microseconds."""
    label = device_label(spec)
    times = []
    for repetition in range(WARM_UP + REPETITIONS):
        start = time.perf_counter()
        spec.frame([label])
        if repetition >= WARM_UP:
            times.append((time.perf_counter() - start) * 1e6)
    return statistics.median(times), float(np.percentile(times, 99)), max(times)


def device_label(spec: CollectionSpec) -> object:
    """Return the label of a value in the middle of the domain, as a device would give it."""
    if spec.mechanism.id == "lip":
        return [1, 0.3]
    if spec.mechanism.id == "sampled":
        return {"answer": "yes", "age": 42.0, "home": 2_048}
    return spec.domain.label(spec.domain.size // 2)


if __name__ == "__main__":
    main()
