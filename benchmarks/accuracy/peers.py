"""Errors beside other libraries and published mechanisms: `python -m benchmarks.accuracy.peers`.

Each row has the variance of ours over that of a peer, at epsilon .5, 1, 2 and 4, with the same
budget and the same users. *values*: the sum over the shares of all values, by `subset-selection`,
beside pure-LDP and multi-freq-ldpy. The latter cuts shares at 0 and divides by their sum: rows
marked *biased* compare what it returns with our shares after `project = "simplex"`; the others
decode its reports without that. *sensitive*: a tenth of the values, held by a fifth of the users,
by `groups`. *ranges*: random ranges of ordered values by `tree`, with its unbiased shares, or in
rows marked *biased* as published with `workload = "levels"`; of peers that are biased the row also
names the data on which they are best. Users are Zipf's, and with DATA, the folder of
`dpbench_1d_4096.npz`, also those of real histograms.

The libraries are in a folder of their own, of which numpy is not used:

    pip install --target FOLDER pure-ldp multi-freq-ldpy "xxhash<4"
    python -m benchmarks.accuracy.peers DATA --libraries FOLDER

Exit status 1 if an unbiased peer has a variance more than 5% below ours, beyond three standard
errors. `--short` takes seconds: 64 values, epsilon 1.
"""

import argparse
import sys
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from tests.seeded import SeededEntropy

from benchmarks.accuracy.alternatives import (
    Oracle,
    ahead,
    hio,
    local_hashing,
    square_wave,
    unary_encoding,
    utility_optimised_subsets,
)
from benchmarks.accuracy.projections import real, smooth, spikes
from benchmarks.accuracy.simulate import zipf
from ldpstream.estimators.projection import known_totals, project_down, project_simplex
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.families.groups.mechanism import sensitive_groups
from ldpstream.mechanisms.families.subset.selection import SubsetSelection
from ldpstream.mechanisms.families.tree.tree import Tree
from ldpstream.mechanisms.interface.mechanism import Mechanism

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Draw = Callable[[], Floats]
"""Draws the reports of all users, and returns the estimates."""

EPSILONS: Final = (0.5, 1.0, 2.0, 4.0)
SIZES: Final = (64, 256, 1024)
FEW: Final = 1_000
"""Users of the libraries, which take one at a time."""
MANY: Final = 20_000
RANGES: Final = 500


@dataclass(frozen=True)
class Errors:
    """The mean of squared errors times the number of users, and its standard error."""

    mean: float
    deviation: float

    @classmethod
    def of(cls, draw: Draw, truth: Floats, users: int, repetitions: int) -> "Errors":
        errors = np.array([((draw() - truth) ** 2).sum() * users for _ in range(repetitions)])
        return cls(float(errors.mean()), float(errors.std(ddof=1) / repetitions**0.5))


@dataclass(frozen=True)
class Ratio:
    """A ratio of ours to a peer's, its standard error, and the data."""

    value: float
    deviation: float
    data: str

    @classmethod
    def between(cls, ours: Errors, theirs: Errors, data: str) -> "Ratio":
        value = ours.mean / theirs.mean
        relative = np.hypot(ours.deviation / ours.mean, theirs.deviation / theirs.mean)
        return cls(value, value * float(relative), data)


def own_shares(mechanism: Mechanism, counts: Integers, entropy: SeededEntropy) -> Floats:
    """Draw the reports of these users, and return the statistic's unbiased shares."""
    values, statistic = np.repeat(np.arange(counts.size), counts), mechanism.empty()
    mechanism.accumulate(statistic, mechanism.privatize(values, entropy=entropy))
    return np.asarray(mechanism.decoder.totals(statistic) / counts.sum())


def published_shares(tree: Tree, counts: Integers, entropy: SeededEntropy) -> Floats:
    """Return the shares of ordered values as documents have them."""
    values, statistic = np.repeat(np.arange(counts.size), counts), tree.empty()
    tree.accumulate(statistic, tree.privatize(values, entropy=entropy))
    n = int(counts.sum())
    shares = tree.decoder.totals(statistic) / n
    return project_down(shares, tree.coordinates, *known_totals(tree, statistic, n))


def pure_ldp(size: int, epsilon: float) -> Iterator[tuple[str, Oracle]]:
    """Yield the frequency oracles of pure-LDP."""
    oracles = import_module("pure_ldp.frequency_oracles")
    hadamard = oracles.HadamardResponseServer(epsilon, size)
    response = oracles.HadamardResponseClient(epsilon, size, hash_funcs=hadamard.get_hash_funcs())
    pairs = {
        "DE": (oracles.DEClient(epsilon, size), oracles.DEServer(epsilon, size)),
        "OLH": (
            oracles.LHClient(epsilon, size, use_olh=True),
            oracles.LHServer(epsilon, size, use_olh=True),
        ),
        "OUE": (
            oracles.UEClient(epsilon, size, use_oue=True),
            oracles.UEServer(epsilon, size, use_oue=True),
        ),
        "THE": (oracles.HEClient(epsilon, size), oracles.HEServer(epsilon, size, use_the=True)),
        "Hadamard response": (response, hadamard),
    }
    for name, (client, server) in pairs.items():

        def estimate(counts: Integers, client: Any = client, server: Any = server) -> Floats:
            server.reset()
            for value in np.repeat(np.arange(1, size + 1), counts).tolist():
                server.aggregate(client.privatise(value))
            counts_of = server.estimate_all(range(1, size + 1), suppress_warnings=True)
            return np.asarray(counts_of / counts.sum())

        yield f"pure-LDP {name}", estimate


def multi_freq(size: int, epsilon: float) -> Iterator[tuple[str, Oracle]]:
    """Yield the frequency oracles of multi-freq-ldpy, each without its cut and with it."""

    def unbiased(counts: Floats, n: int, own: float, other: float) -> Floats:
        return np.asarray((np.asarray(counts) / n - other) / (own - other))

    for name, options in {"GRR": (), "SS": (), "UE": (True,), "LH": (True,), "HE": ()}.items():
        module = import_module(f"multi_freq_ldpy.pure_frequency_oracles.{name}")
        cut, client = module.MI, getattr(module, f"{name}_Client")
        combine = getattr(module, f"{name}_Aggregator_MI")
        for mark, inverse in (("", unbiased), (", biased", cut)):

            def estimate(
                counts: Integers,
                module: Any = module,
                client: Any = client,
                combine: Any = combine,
                inverse: Any = inverse,
                options: tuple[bool, ...] = options,
                name: str = name,
            ) -> Floats:
                module.MI = inverse
                values = np.repeat(np.arange(size), counts).tolist()
                extra = () if name == "HE" else options
                reports = [client(value, size, epsilon, *extra) for value in values]
                inner = (epsilon, *options) if name == "UE" else (size, epsilon, *options)
                return np.asarray(combine(reports, *inner))

            yield f"multi-freq-ldpy {name}{mark}", estimate


def of_values(
    size: int, epsilon: float, data: str, counts: Integers, short: bool
) -> dict[str, Ratio]:
    """Compare the shares of all values."""
    truth, entropy = counts / counts.sum(), SeededEntropy(size)
    ours = SubsetSelection(epsilon, Blocks.one(size))
    repetitions = 8 if short else max(8, 2048 // size)
    base = Errors.of(lambda: own_shares(ours, counts, entropy), truth, FEW, 8 * repetitions)
    cut = Errors.of(
        lambda: project_simplex(own_shares(ours, counts, entropy)), truth, FEW, 8 * repetitions
    )
    generator = np.random.default_rng(size)
    peers = {
        "OUE": unary_encoding(epsilon, generator),
        "OLH": local_hashing(epsilon, generator),
        "equal shares, biased": lambda _: np.full(size, 1.0 / size),
    }
    if "pure_ldp" in sys.modules:
        peers |= dict(pure_ldp(size, epsilon))
        peers |= dict(multi_freq(size, epsilon))
    return {
        f"values: {name}": Ratio.between(
            cut if name.endswith("biased") else base,
            Errors.of(partial(draw, counts), truth, FEW, repetitions),
            data,
        )
        for name, draw in peers.items()
    }


def of_sensitive(size: int, epsilon: float, data: str) -> dict[str, Ratio]:
    """Compare the shares where a tenth of the values is sensitive."""
    few = size // 10
    shares = np.concatenate([0.2 * zipf(few), 0.8 * zipf(size - few)])
    generator, entropy = np.random.default_rng(size), SeededEntropy(size)
    counts = generator.multinomial(MANY, shares)
    truth, repetitions = counts / MANY, max(8, 16384 // size)
    ours = sensitive_groups(epsilon, size, frozenset(range(few)))
    base = Errors.of(lambda: own_shares(ours, counts, entropy), truth, MANY, 2 * repetitions)
    ratios = {}
    for name, chosen in (("uRR", 1), ("uSS", max(1, round(few / (np.exp(epsilon) + 1.0))))):
        draw = utility_optimised_subsets(epsilon, few, chosen, generator)
        errors = Errors.of(partial(draw, counts), truth, MANY, repetitions)
        ratios[f"sensitive: {name}"] = Ratio.between(base, errors, data)
    return ratios


def of_ranges(
    size: int, epsilon: float, data: str, counts: Integers, short: bool
) -> dict[str, Ratio]:
    """Compare random ranges of ordered values."""
    generator, entropy = np.random.default_rng(size), SeededEntropy(size)
    ranges = np.sort(generator.integers(0, size + 1, (RANGES, 2)), axis=1)

    def over(shares: Floats) -> Floats:
        prefixes = np.append(0.0, shares.cumsum())
        return np.asarray(prefixes[ranges[:, 1]] - prefixes[ranges[:, 0]])

    tree, levels = (Tree(epsilon, Blocks.one(size), (), one) for one in ("ranges", "levels"))
    draws: dict[str, tuple[Draw, Draw]] = {
        "HIO": (
            lambda: over(own_shares(tree, counts, entropy)),
            lambda: hio(epsilon, counts, ranges, generator),
        )
    }
    peers = {"AHEAD, biased": ahead, "Square Wave, EMS, biased": square_wave}
    for name, peer in peers.items():

        def theirs(
            peer: Callable[[float, Integers, np.random.Generator], Floats] = peer,
        ) -> Floats:
            return over(peer(epsilon, counts, generator))

        draws[name] = (lambda: over(published_shares(levels, counts, entropy)), theirs)
    truth, repetitions = over(counts / counts.sum()), 3 if short else 6
    ratios = {}
    for name, pair in draws.items():
        base, errors = (Errors.of(draw, truth, MANY, repetitions) for draw in pair)
        ratios[f"ranges: {name}"] = Ratio.between(base, errors, data)
    return ratios


def collect(data: Path | None, short: bool) -> dict[tuple[str, int], dict[float, list[Ratio]]]:
    """Return the ratios of every peer and size, by epsilon."""
    ratios: dict[tuple[str, int], dict[float, list[Ratio]]] = {}
    histograms: dict[str, Callable[[int], Floats]] = {
        "Zipf": zipf,
        "smooth": smooth,
        "spikes": spikes,
    }
    if data is not None:
        histograms |= {name: real(data)[name] for name in ("INCOME", "PATENT")}
    for size in SIZES[: 1 if short else None]:
        for epsilon in (1.0,) if short else EPSILONS:
            rows = [of_sensitive(size, epsilon, "Zipf")]
            for name, shares in histograms.items():
                seed = zlib.crc32(f"{name}/{size}".encode())
                draw = np.random.default_rng(seed).multinomial
                rows.append(of_ranges(size, epsilon, name, draw(MANY, shares(size)), short))
                if name == "Zipf":
                    rows.append(of_values(size, epsilon, name, draw(FEW, shares(size)), short))
            for peers in rows:
                for peer, ratio in peers.items():
                    ratios.setdefault((peer, size), {}).setdefault(epsilon, []).append(ratio)
            print(f"{size} values, epsilon {epsilon:g}", file=sys.stderr, flush=True)
    return ratios


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a row for each peer and size."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy.peers")
    parser.add_argument("data", type=Path, nargs="?", help="folder of the real histograms")
    parser.add_argument("--libraries", type=Path, help="folder with pure-LDP and multi-freq-ldpy")
    parser.add_argument("--short", action="store_true")
    options = parser.parse_args(arguments)
    if options.libraries is not None:
        sys.path.append(str(options.libraries))
        # RAPPOR has cohorts and is not compared; it would need scikit-learn and statsmodels.
        rappor = "pure_ldp.frequency_oracles.rappor"
        sys.modules[rappor] = ModuleType(rappor)
        import_module("pure_ldp")
    # Both libraries warn of few users, and index arrays in ways that numpy deprecates.
    warnings.simplefilter("ignore")
    np.random.seed(7)  # noqa: NPY002 (which the libraries draw from)
    worse = []
    for (peer, size), of in sorted(collect(options.data, options.short).items()):
        cells = []
        for ratios in of.values():
            mean = float(np.exp(np.mean(np.log([ratio.value for ratio in ratios]))))
            deviation = float(np.sqrt(sum(ratio.deviation**2 for ratio in ratios))) / len(ratios)
            most = max(ratios, key=lambda ratio: ratio.value)
            named = f" ({most.value:.2f} {most.data})" if len(ratios) > 1 else ""
            cells.append(f"{mean:6.3f} +-{deviation:.3f}{named}")
            if not peer.endswith("biased") and mean - 3.0 * deviation > 1.05:
                worse.append((peer, size))
        print(f"{peer:36} {size:5} {'  '.join(cells)}", flush=True)
    print("unbiased peers below ours by more than 5%:", worse or "none")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
