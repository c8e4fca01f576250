"""Calls of the library that two commits are compared by: `python -m benchmarks.compare_calls`.

A process of each commit runs this file, with its own `ldpstream`, takes the name of a call from
each line of its input and answers with the processor time of one call, in seconds. The calls are
those of users (`import ldpstream as ldp`) and, for what has no such face, the estimators'. Nothing
is imported from this repository's tests and benchmarks, which the other commit has in another form.

What is computed once for a configuration is measured with a new epsilon at each call.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any, Final

import numpy as np

import ldpstream as ldp

SIZES: Final = (16, 1_024, 43_750)
REPORTS: Final = 100_000
LEAST_SECONDS: Final = 0.02
"""Short calls are repeated for so long, which is far above the clock's step."""
METHODS: Final = ("normal", "padded", "bernstein", "exact", "anytime")
CHANNEL: Final = str(Path(__file__).parents[2] / "tests" / "vectors" / "channels" / "line.json")
QUERIES: Final[Mapping[str, Mapping[str, Any]]] = {
    "ranges": {"ranges": ["3..9", "100..900"]},
    "quantiles": {"quantiles": [0.25, 0.5, 0.75]},
    "areas": {"areas": True},
    "top": {"top": 20},
}
PLANS: Final[Mapping[str, Mapping[str, Any]]] = {
    "one block of 64": {"domain": {"size": 64}},
    "blocks": {"domain": {"size": 64, "blocks": 8}},
    "a range": {"domain": {"size": 64}, "publish": {"ranges": {"r": [10, 30]}}},
    "quantiles of 1,024": {"domain": {"size": 1_024}, "publish": {"quantiles": [0.5]}},
    "a metric": {"domain": {"size": 64}, "mechanism": "l1-geometric"},
    "sensitive values": {
        "domain": {"values": [f"v{number}" for number in range(64)]},
        "mechanism": "high-low",
        "sensitive": ["v0", "v1", "v2"],
    },
}
Call = Callable[[], object]


def _tables() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the name and the keys of a collection of every mechanism, at some sizes."""
    two = {"size": 2}
    yield "binary", {"mechanism": "binary", "epsilon": [1.0, 2.0], "domain": two}
    yield "lip", {"mechanism": "lip", "epsilon": 1.0, "prior": 0.3, "domain": two}
    yield "optimal", {"mechanism": "optimal", "channel": CHANNEL, "domain": {"size": 6}}
    attributes = {"age": {"interval": [0, 100], "bins": 10}, "likes": {"values": ["no", "yes"]}}
    yield (
        "sampled",
        {
            "mechanism": "block-hadamard",
            "epsilon": 1.0,
            "domain": {"attributes": attributes},
        },
    )
    for size in SIZES:
        labels = [f"v{number}" for number in range(size)]
        named = {"epsilon": 1.0, "domain": {"values": labels}, "sensitive": labels[: size // 4]}
        for mechanism in ("high-low", "groups"):
            yield f"{mechanism} {size:,}", {"mechanism": mechanism, **named}
        plain = {"epsilon": 1.0, "domain": {"size": size}}
        for mechanism in (
            "randomized-response",
            "block-hadamard",
            "projective-geometry",
            "tree",
            *(("subset-selection", "l1-geometric", "l1-bits") if size <= 1_024 else ()),
        ):
            yield f"{mechanism} {size:,}", {"mechanism": mechanism, **plain}
        if size <= 1_024:
            yield f"matrix {size:,}", {"mechanism": "matrix", "strategy": "haar", **plain}
        blocks = {"size": size, "blocks": max(2, size // 50)}
        yield (
            f"block-hadamard {size:,}, blocks",
            {"mechanism": "block-hadamard", "epsilon": 1.0, "domain": blocks},
        )


TABLES: Final = dict(_tables())
NAMES: Final = tuple(TABLES)


def _table(name: str, epsilon: float) -> Mapping[str, Any]:
    """Return the keys of a collection, its epsilon (the first one of two) being as given."""
    table = TABLES[name]
    given = table.get("epsilon")
    if isinstance(given, list):
        return {**table, "epsilon": [epsilon, *given[1:]]}
    return table if given is None else {**table, "epsilon": epsilon}


@cache
def _collection(name: str) -> Any:
    return ldp.define_collection("c", **TABLES[name])


@cache
def _reports(name: str) -> Any:
    """Return reports of all values of a domain, as many of each."""
    mechanism = _collection(name).spec.mechanism
    return mechanism.privatize(np.arange(REPORTS) % mechanism.size)


@cache
def _statistic(name: str) -> Any:
    mechanism = _collection(name).spec.mechanism
    statistic = mechanism.empty()
    mechanism.accumulate(statistic, _reports(name))
    return statistic


def draw(name: str) -> Call:
    mechanism = _collection(name).spec.mechanism
    values = np.arange(REPORTS) % mechanism.size
    return lambda: mechanism.privatize(values)


def draw_one(name: str) -> Call:
    mechanism = _collection(name).spec.mechanism
    value = np.array([1])
    return lambda: mechanism.privatize(value)


def decode(name: str) -> Call:
    mechanism = _collection(name).spec.mechanism
    payload = mechanism.encode(_reports(name))
    return lambda: mechanism.decode(payload)


def add(name: str) -> Call:
    mechanism, reports = _collection(name).spec.mechanism, _reports(name)
    statistic = mechanism.empty()
    return lambda: mechanism.accumulate(statistic, reports)


def values(name: str, **options: Any) -> Call:
    from ldpstream.estimators.estimate import estimate_values

    mechanism, statistic = _collection(name).spec.mechanism, _statistic(name)
    n = mechanism.count(statistic)
    return lambda: estimate_values(mechanism, statistic, n, **options)


def bounds(name: str, **options: Any) -> Call:
    """Bound every value, given the sums."""
    from ldpstream.estimators.bounds.bounded import bound
    from ldpstream.estimators.bounds.options import Options
    from ldpstream.estimators.estimate import value_sums

    mechanism, statistic = _collection(name).spec.mechanism, _statistic(name)
    n = mechanism.count(statistic)
    sums, chosen = value_sums(mechanism, statistic, n), Options(**options)
    return lambda: bound(sums, n, chosen)


def few(name: str, number: int) -> Call:
    """Estimate some single values, given the shares of all."""
    from ldpstream.estimators import estimate

    mechanism, statistic = _collection(name).spec.mechanism, _statistic(name)
    n = mechanism.count(statistic)
    module: Any = estimate
    # The other commit may call it by its former name.
    decode = module.decode_values if hasattr(module, "decode_values") else module.share_sums
    options = {"values": np.arange(min(number, mechanism.size))}
    decoded = decode(mechanism, statistic, n)
    return lambda: module.estimate_values(mechanism, statistic, n, decoded=decoded, **options)


def document(name: str, *, first: bool = False, **options: Any) -> Call:
    """Build a document; if `first`, of a collection for which nothing is prepared."""
    reports = ldp.ReportSet(_collection(name), _reports(name))
    if not first:
        return lambda: ldp.estimate(reports, **options)
    epsilons = count(1.0, 1e-4)

    def call() -> object:
        collection = ldp.define_collection("c", **_table(name, next(epsilons)))
        return ldp.estimate(ldp.ReportSet(collection, _reports(name)), **options)

    return call


def change(name: str, method: Any) -> Call:
    from ldpstream.estimators.comparison.change import estimate_change
    from ldpstream.estimators.estimate import estimate_values

    mechanism, statistic = _collection(name).spec.mechanism, _statistic(name)
    n = mechanism.count(statistic)

    def estimate(options: Any) -> Any:
        return estimate_values(mechanism, statistic, n, **options)

    chosen: Any = {"method": method, "estimand": "population"}
    return lambda: estimate_change(estimate, estimate, devices="different", **chosen)


def define(name: str) -> Call:
    epsilons = count(1.0, 1e-4)
    return lambda: ldp.define_collection("c", **_table(name, next(epsilons)))


def certify(name: str) -> Call:
    epsilons = count(1.0, 1e-4)
    return lambda: ldp.certify(ldp.define_collection("c", **_table(name, next(epsilons))))


def plan(**keys: Any) -> Call:
    epsilons = count(1.0, 1e-4)

    def call() -> object:
        table = {"mechanism": "randomized-response", "epsilon": next(epsilons), **keys}
        collection = ldp.define_collection("c", **table)
        return ldp.plan(collection, respondents=10_000, search_seconds=0.0)

    return call


def _of_mechanisms() -> Iterator[tuple[str, Callable[[], Call]]]:
    for name in NAMES:
        for make in (draw, draw_one, decode, add, define):
            yield f"{make.__name__}: {name}", partial(make, name)
        for method in ("padded", "anytime"):
            yield f"values, {method}: {name}", partial(values, name, method=method)
        for number in (3, 1_000):
            yield f"{number:,} values: {name}", partial(few, name, number)
        if "43,750" not in name:
            yield f"certify: {name}", partial(certify, name)


def _of_methods() -> Iterator[tuple[str, Callable[[], Call]]]:
    for name in ("tree 1,024", "block-hadamard 1,024", "block-hadamard 43,750, blocks"):
        for method in METHODS:
            yield f"bounds, {method}: {name}", partial(bounds, name, method=method)
            together = partial(bounds, name, method=method, simultaneous=True)
            yield f"bounds, {method}, simultaneous: {name}", together
            yield f"change, {method}: {name}", partial(change, name, method)


def _of_documents() -> Iterator[tuple[str, Callable[[], Call]]]:
    for name in (
        "block-hadamard 1,024",
        "projective-geometry 1,024",
        "tree 1,024",
        "l1-geometric 1,024",
        "randomized-response 43,750",
    ):
        for what, options in QUERIES.items():
            yield f"{what}: {name}", partial(document, name, **options)
            if "1,024" in name:
                yield f"first {what}: {name}", partial(document, name, first=True, **options)


CALLS: Final[Mapping[str, Callable[[], Call]]] = {
    **dict(_of_mechanisms()),
    **dict(_of_methods()),
    **dict(_of_documents()),
    **{f"plan: {name}": partial(plan, **keys) for name, keys in PLANS.items()},
}


def main() -> None:
    """Answer lines of names with lines of seconds, or of a text where a call does not exist."""
    calls: dict[str, tuple[Call, int]] = {}
    for line in sys.stdin:
        name = line.strip()
        try:
            if name not in calls:
                call = CALLS[name]()
                # What is imported or prepared at a first call is not counted.
                _seconds(call, 1)
                calls[name] = call, max(1, round(LEAST_SECONDS / max(_seconds(call, 1), 1e-7)))
            answer: Any = _seconds(*calls[name])
        except (ImportError, AttributeError, TypeError, ValueError) as error:
            answer = f"{type(error).__name__}: {error}"
        print(json.dumps(answer), flush=True)


def _seconds(call: Call, times: int) -> float:
    begun = time.process_time()
    for _ in range(times):
        call()
    return (time.process_time() - begun) / times


if __name__ == "__main__":
    main()
