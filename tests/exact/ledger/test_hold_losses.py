"""`hold`: what the reports of an epoch, and of all epochs, lose together, all exactly."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from ldpstream.mechanisms import CollectionSpec
from ldpstream.mechanisms.channels.permanent_draw import most_periods, split_windows
from ldpstream.mechanisms.exact.dyadic import exp_floor
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from tests.exact.held import FAMILIES, again, held, matrix, moved, of_epoch
from tests.exact.wire.test_vectors import spec_of

BLOCKS = {
    "randomized-response": "domain = { size = 6, blocks = [[0, 1], [2], [3, 4, 5]] }",
    "block-hadamard": "domain = { size = 6, blocks = [[0, 1], [2], [3, 4, 5]] }",
    "projective-geometry": "domain = { size = 6, blocks = [[0, 1], [2], [3, 4, 5]] }",
    "high-low": "domain = { size = 6 }\nsensitive = [1, 4]",
    "groups": "domain = { size = 6 }\nsensitive = [1, 4]",
    "groups subsets": "domain = { size = 6 }\nsensitive = [0, 1, 2, 4, 5]\nshare = 0.0",
    "groups lists": "domain = { size = 5 }\nsensitive = [[1], [2]]\nepsilon_rest = 0.6",
    "groups nested": "domain = { size = 5, blocks = [[0, 1, 2, 3], [4]] }\nepsilon_outside = 1.0",
    "groups blocks": "domain = { size = 5, blocks = [[1, 2, 4], [0, 3]] }\n"
    "epsilon_outside = [inf, 1.0]",
    "subset-selection": "domain = { size = 6, blocks = [[0, 1], [2], [3, 4, 5]] }",
    "binary": "domain = { values = ['a', 'b'] }",
    "optimal": 'domain = { size = 6 }\nchannel = "channels/line.json"',
    "l1-bits": "domain = { sizes = [3, 4] }",
    "tree": "domain = { size = 12, blocks = [[0, 1], [2], [3, 4, 5, 6, 7, 8, 9, 10, 11]] }",
    "l1-geometric": "domain = { sizes = [3, 4] }",
}


def ratio(one: dict, other: dict) -> Fraction | None:
    """Return the largest ratio of two distributions; None where it is infinite."""
    pairs = [(p, other[ys]) for ys, p in one.items() if p]
    return None if any(q == 0 for _, q in pairs) else max(p / q for p, q in pairs)


def losses_of(spec: CollectionSpec) -> Fraction:
    return max(loss.ratio for loss in spec.mechanism.certify().losses)


@pytest.mark.parametrize("mechanism", FAMILIES)
@pytest.mark.parametrize("blocks", [False, True])
def test_each_report_alone_is_one_of_the_smaller_budget(mechanism: str, blocks: bool):
    spec = held(mechanism, domain=BLOCKS[mechanism] if blocks else None)
    first, second = matrix(spec, permanent=True), again(spec)
    outputs = range(len(second))
    composed = [
        [sum((row[z] * second[z][y] for z in outputs), Fraction(0)) for y in outputs]
        for row in first
    ]
    assert composed == matrix(spec, permanent=False)
    assert spec.hold.permanent.certify().passed
    draw = spec.hold.permanent
    assert draw.parameters().get("epsilon", 2.0) in (2.0, [2.0, 1.5])
    assert mechanism in ("l1-bits", "l1-geometric") or draw.policy.largest_loss() == 2


@pytest.mark.parametrize(
    ("mechanism", "blocks"),
    [
        *((mechanism, False) for mechanism in FAMILIES),
        *((f"groups {budgets}", True) for budgets in ("lists", "nested", "blocks")),
    ],
)
def test_reports_of_one_draw_lose_what_their_spec_states(mechanism: str, blocks: bool):
    """Every sequence of outputs, all protected pairs: from epsilon up to that of the draw."""
    spec = held(mechanism, domain=BLOCKS[mechanism] if blocks else None)
    first, second = matrix(spec, permanent=True), again(spec)
    known = []
    for reports in range(1, 5 if len(second) < 5 else 4):
        rows = of_epoch(first, second, reports)
        pairs = spec.charged.constraints()
        worst = max(ratio(rows[x], rows[other]) for x, other, _ in pairs)
        said = spec.hold.chain.ratio(reports)
        assert worst == said or (worst < said and reports > 1 and not spec.hold.chain.exact)
        assert said <= exp_floor(Fraction(2))
        known.append(worst)
    assert known == sorted(known)
    certificate = spec.mechanism.certify()
    assert known[0] == max(loss.ratio for loss in certificate.losses)
    assert known[-1] < max(loss.ratio for loss in spec.hold.permanent.certify().losses)


@pytest.mark.parametrize("mechanism", ["l1-bits", "l1-geometric"])
def test_values_some_steps_apart_lose_what_their_steps_do(mechanism: str):
    """Every two of 4 values, or 2 x 3, at every sequence of outputs; of bits exactly."""
    for domain in ("domain = { size = 4 }", "domain = { sizes = [2, 3] }"):
        spec = held(mechanism, domain=domain)
        first, second = matrix(spec, permanent=True), again(spec)
        shape = spec.mechanism.shape
        places = list(itertools.product(*map(range, shape)))
        assert spec.hold.chain.steps == sum(shape) - len(shape)
        for reports in (1, 2, 3):
            rows = of_epoch(first, second, reports)
            for x, other in itertools.permutations(range(len(places)), 2):
                apart = sum(abs(a - b) for a, b in zip(places[x], places[other], strict=True))
                found, said = ratio(rows[x], rows[other]), spec.hold.chain.ratio(reports) ** apart
                assert found <= said
                assert found == said or (reports > 1 and not spec.hold.chain.exact)


@pytest.mark.parametrize("length", [2, 3, 4, 5])
@pytest.mark.parametrize(("larger", "epsilon"), [(2.0, 1.0), (1.0, 0.1), (0.5, 0.2), (4.0, 0.1)])
def test_no_step_of_geometric_noise_loses_more_than_stated(
    length: int, larger: float, epsilon: float
):
    """Every sequence of outputs, exactly."""
    permanent, chain = L1Geometric(epsilon, (length,)).chain(larger)
    first = [[row[y] for y in range(length)] for row in permanent.channel().rows]
    for reports in range(1, 5):
        rows = of_epoch(first, moved(chain, epsilon), reports)
        steps = [(x, x + 1) for x in range(length - 1)]
        worst = max(ratio(rows[a], rows[b]) for x, z in steps for a, b in ((x, z), (z, x)))
        said = chain.ratio(reports)
        assert worst <= said <= Fraction(WORD, permanent.threshold)
        assert worst == said or reports > 1
    assert chain.ratio(65) == Fraction(WORD, permanent.threshold)


def test_the_bound_of_a_step_is_that_of_long_axes():
    """30 values, epsilon 0.1 of 1: one report sent again and again loses 99% of the bound."""
    permanent, chain = L1Geometric(0.1, (30,)).chain(1.0)
    first = [[float(row[y]) for y in range(30)] for row in permanent.channel().rows]
    second = np.array(moved(chain, 0.1), dtype=np.float64)
    for reports in (2, 3, 8, 16):
        rows = np.log(np.array(first) @ second**reports)
        found = np.abs(np.diff(rows, axis=0)).max()
        assert 0.99 < found / math.log(chain.ratio(reports)) < 1 + 1e-9


def test_losses_of_the_theory():
    """Randomised response, k = 4, 2 to 1: 1, 1.678, 1.984 and 2.000 of 1, 2, 4 and 8 reports."""
    spec = held(domain="domain = { size = 4 }")
    found = [math.log(spec.hold.chain.ratio(reports)) for reports in (1, 2, 4, 8)]
    assert found == pytest.approx([1, 1.678, 1.984, 2.000], abs=6e-4)
    # One report after another of the same permanent one: the step of Hadamard response.
    for size, order, step in ((15, 16, 3.25), (63, 64, 4.60)):
        blend = held("block-hadamard", domain=f"domain = {{ size = {size} }}").hold.chain.blends[
            order
        ]
        assert math.log(1 + order * blend.keep / (1 - blend.keep)) == pytest.approx(step, abs=6e-3)


REPEATED = {"randomized-response", "high-low"}


@pytest.mark.parametrize(
    ("mechanism", "hold"),
    [(name, "{ windows = %d, epsilon = 2.0 }") for name in FAMILIES if name != "groups subsets"]
    + [(name, "%d") for name in sorted(REPEATED)],
)
@pytest.mark.parametrize("windows", [2, 3, 4])
def test_no_two_streams_lose_more_and_some_lose_all(mechanism: str, hold: str, windows: int):
    """All 81 streams of 3 values in 4 windows, at every place of the epochs: 6,480 pairs."""
    spec = held(mechanism, hold % windows)
    values, policy = range(spec.mechanism.size), spec.charged
    first, second = matrix(spec, permanent=True), again(spec)
    pairs = itertools.permutations(values, 2)
    protected = {pair for pair in pairs if policy.entry(*pair) is not None}
    by_reports = {m: of_epoch(first, second, m) for m in range(1, windows + 1)}
    worst, drawn = Fraction(1), 0
    for offset in range(windows):
        epochs = [(t + offset) // windows for t in range(4)]
        sizes = [epochs.count(epoch) for epoch in dict.fromkeys(epochs)]
        firsts = [epochs.index(epoch) for epoch in dict.fromkeys(epochs)]
        # What a stream sends follows from the first value of each epoch alone.
        losses = {
            pair: [ratio(by_reports[m][pair[0]], by_reports[m][pair[1]]) for m in sizes]
            for pair in protected
        }
        streams = {
            tuple(stream[t] for t in firsts) for stream in itertools.product(values, repeat=4)
        }
        for stream, other in itertools.product(streams, repeat=2):
            total = Fraction(1)
            for place, (x, z) in enumerate(zip(stream, other, strict=True)):
                if x != z and (x, z) not in protected:
                    break
                total *= losses[x, z][place] if x != z else 1
            else:
                worst = max(worst, total)
        drawn = max(drawn, len(sizes))
    split = spec.hold.worst_split(4)
    chain = spec.hold.chain
    said = math.prod(
        (chain.ratio(m) if chain is not None else losses_of(spec)) ** times
        for m, times in split.items()
    )
    assert worst <= said ** (1 if chain is None else chain.steps)
    assert worst == said ** (1 if chain is None else chain.steps) or not chain.exact
    assert spec.hold.epochs(4) == drawn
    assert worst <= exp_floor(drawn * spec.charged.largest_loss())


def test_losses_that_are_not_enumerated_are_bounded_from_both_sides():
    """100 reports, each of which discloses little of its draw: epsilon 0.01 of 4."""
    spec = spec_of(
        {
            "toml": '[collection.coins]\nmechanism = "randomized-response"\nepsilon = 0.01\n'
            "domain = { size = 2 }\nhold = { windows = 100, epsilon = 4.0 }\n"
        }
    )
    (blend,) = spec.hold.chain.blends.values()
    low, high = spec.hold.loss(1)
    assert low == pytest.approx(0.01) == high
    more, less = float(blend.likely), float(blend.unlikely)

    def lost(reports: int) -> float:
        grown = float(1 + 2 * blend.keep / (1 - blend.keep)) ** reports
        return math.log((more * grown + less) / (less * grown + more))

    low, high = spec.hold.loss(102)
    split = spec.hold.worst_split(102)
    assert max(split) > 64
    assert low <= sum(times * lost(reports) for reports, times in split.items()) <= high
    assert 0.5 < low < 2


def test_large_subsets_are_certified_at_once():
    """Subsets of 8,000 values are some 2^7,000: two reports of one draw tell which it is."""
    spec = held("subset-selection", "{ windows = 91, epsilon = 2.0 }", "domain = { size = 8000 }")
    low, high = spec.hold.loss(365)
    assert low == pytest.approx(10) == high
    (blend,) = spec.hold.chain.blends.values()
    assert spec.hold.chain.ratio(1) < spec.hold.chain.ratio(2) == blend.likely / blend.unlikely


def test_epochs_are_counted_at_their_worst_place():
    for windows in range(1, 30):
        for epoch in range(2, 9):
            splits = [
                split_windows(windows, epoch, first) for first in range(1, min(windows, epoch) + 1)
            ]
            assert all(sum(m * times for m, times in split.items()) == windows for split in splits)
            most = max(sum(split.values()) for split in splits)
            assert most == most_periods(windows, epoch)


def test_a_long_epoch_loses_what_its_draw_does():
    spec = held(hold="{ windows = 1000, epsilon = 2.0 }")
    assert spec.hold.chain.ratio(1000) == max(x.ratio for x in spec.hold.permanent.certify().losses)
    assert spec.hold.worst_split(365) == {64: 1, 301: 1}
    assert sum(spec.hold.worst_split(5000).values()) == 6
