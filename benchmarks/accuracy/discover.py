"""Recall of unknown words, and false discoveries, with reports drawn by the mechanism itself.

    python -m benchmarks.accuracy.discover

Each device has one word, drawn by Zipf's law from distinct random words of this many bits, or one
that no other device has (0); it takes part in one round, drawn uniformly. Of the m most frequent
words `recall` is the share that is listed, and `best` the share among the first m listed. `false`
is the number of listed words that no device has, and the number of runs with any.
"""

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tests.seeded import SeededEntropy

from ldpstream.estimators.discovery import confirmed, first_round, next_round
from ldpstream.estimators.estimate import estimate_sets, estimate_values
from ldpstream.mechanisms.domains.words import Round, Words
from ldpstream.mechanisms.wire.rounds import in_round, round_document, words_of
from ldpstream.mechanisms.wire.spec import CollectionSpec

Integers = NDArray[np.int64]
_WINDOW_MS = 3_600_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", type=int, default=1_000_000)
    parser.add_argument("--words", type=int, default=1_000_000, help="distinct ones")
    parser.add_argument("--bits", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--kept", type=int, default=64)
    parser.add_argument("--epsilon", type=float, default=4.0)
    parser.add_argument("--mechanism", default="projective-geometry")
    parser.add_argument("--zipf", type=float, nargs="*", default=[1.1, 1.5, 0.0])
    parser.add_argument("--top", type=int, default=20)
    parser.add_argument("--runs", type=int, default=20)
    asked = parser.parse_args()
    words = {"bits": asked.bits, "rounds": asked.rounds, "kept": asked.kept}
    table = {"mechanism": asked.mechanism, "epsilon": asked.epsilon, "domain": {"words": words}}
    spec = CollectionSpec.from_mapping("words", table, base=Path())
    print("| Zipf | recall | best | listed | false | runs with false |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    for exponent in asked.zipf:
        rows = []
        for seed in range(asked.runs):
            rng = np.random.default_rng(seed)
            held = _held(rng, exponent, devices=asked.devices, words=asked.words, bits=asked.bits)
            rows.append(_run(spec, held, rng, seed, top=asked.top))
        recall, best, listed, false = np.array(rows, dtype=float).T
        wrong = int(np.count_nonzero(false))
        print(
            f"| {exponent or 'none'} | {recall.mean():.3f} | {best.mean():.3f} "
            f"| {listed.mean():.1f} | {int(false.sum())} | {wrong} of {asked.runs} |",
            flush=True,
        )


def _held(
    rng: np.random.Generator, exponent: float, *, devices: int, words: int, bits: int
) -> tuple[Integers, Integers]:
    """Return distinct words as numbers, the most frequent first, and how many devices have each."""
    most = min(words if exponent else devices, 1 << bits)
    drawn = rng.permutation(np.unique(rng.integers(0, 1 << bits, most, dtype=np.int64)))
    if not exponent:
        return drawn, np.ones(drawn.size, dtype=np.int64)
    weights = np.arange(1, drawn.size + 1, dtype=np.float64) ** -exponent
    return drawn, rng.multinomial(devices, weights / weights.sum()).astype(np.int64)


def _run(
    spec: CollectionSpec,
    held: tuple[Integers, Integers],
    rng: np.random.Generator,
    seed: int,
    *,
    top: int,
) -> tuple[float, float, int, int]:
    """Return recall, recall among the best, and the numbers of listed and of false words."""
    drawn, counts = held
    words, mechanism = words_of(spec), spec.mechanism
    asked, left = first_round(0, _WINDOW_MS), counts.copy()
    while True:
        own = words_of(in_round(spec, round_document(spec, asked)))
        taking = rng.binomial(left, 1.0 / (words.rounds - asked.number))
        left -= taking
        values = np.repeat(_places(own, asked, drawn), taking)
        statistic, n = mechanism.empty(), len(values)
        entropy = SeededEntropy(seed * words.rounds + asked.number)
        mechanism.accumulate(statistic, mechanism.privatize(values, entropy=entropy))
        if asked.number == words.rounds - 1:
            break
        shares = estimate_values(mechanism, statistic, n, method="normal").value
        asked = next_round(own, dict(enumerate(shares.tolist())))
    sets = [np.array([one]) for one in (*range(len(asked.prefixes)), own.other)]
    found = estimate_sets(mechanism, statistic, n, sets, simultaneous=True)
    numbers = confirmed(own, found.low.tolist())
    listed = [int(asked.prefixes[one], 2) for one in sorted(numbers, key=lambda i: -found.value[i])]
    true, there = set(drawn[:top].tolist()), set(drawn[counts > 0].tolist())
    recall, best = (len(true & set(some)) / top for some in (listed, listed[:top]))
    return recall, best, len(listed), len(set(listed) - there)


def _places(own: Words, asked: Round, drawn: Integers) -> Integers:
    """Return where words are placed in a round: `Words.place` for arrays of numbers."""
    length, extension = own.lengths[asked.number], own.extension(asked.number)
    ahead = drawn >> (own.bits - length)
    kept = np.array([int(one or "0", 2) for one in asked.prefixes], dtype=np.int64)
    order = np.argsort(kept)
    at = np.minimum(np.searchsorted(kept[order], ahead >> extension), kept.size - 1)
    inside = kept[order][at] == ahead >> extension
    tails = ahead & ((1 << extension) - 1)
    return np.where(inside, (order[at] << extension) + tails, own.other)


if __name__ == "__main__":
    main()
