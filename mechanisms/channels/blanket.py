"""The privacy blanket: the part of a channel that is the same for every value.

`m(y) = min_x Q[x, y]` is the blanket (Balle, Bell, Gascon, Nissim 2019). Whatever its value, a
report is a draw from `m / g` with probability `g = sum m`. How well n reports hide which of two
values one of them has depends on the ratios `Q[x, y] / m(y)` alone (`amplified`).
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from ldpstream.mechanisms.channels.channel import Channel
from ldpstream.mechanisms.policies.policy import Policy

MOST_BLANKETS: Final = 16
"""If a budget has more different blankets, one that bounds them all takes their place."""


@dataclass(frozen=True)
class Blanket:
    """A pair of values x and x' among reports of any values.

    `atoms` are `(mass, first, second)`: outputs with `Q[x, y] / m(y) = first` and
    `Q[x', y] / m(y) = second` have the mass `sum m(y)` together. `bare` are `(Q[x, y], Q[x', y])`
    of outputs that some value never gives.
    """

    atoms: tuple[tuple[Fraction, Fraction, Fraction], ...]
    bare: tuple[tuple[Fraction, Fraction], ...] = ()

    @property
    def largest(self) -> Fraction:
        """The largest ratio of the atoms."""
        return max((max(first, second) for _, first, second in self.atoms), default=Fraction(0))

    @property
    def ratio(self) -> Fraction | None:
        """The largest `Q[x, y] / m(y)` of the pair; None if it is unbounded."""
        return None if self.bare else self.largest

    @property
    def reversed(self) -> "Blanket":
        """The same blanket with x and x' exchanged."""
        return Blanket(
            tuple(sorted((mass, second, first) for mass, first, second in self.atoms)),
            tuple(sorted((second, first) for first, second in self.bare)),
        )


def of_supports(ratio: Fraction, share: Fraction, both: Fraction) -> Blanket:
    """Return the blanket of a channel with two probabilities, one `ratio` times the other.

    Each value gives the larger one to a fraction `share` of all outputs; any two values have a
    fraction `both` of these in common.
    """
    g = 1 / (share * ratio + 1 - share)
    unit = Fraction(1)
    atoms = (
        (g * both, ratio, ratio),
        (g * (share - both), ratio, unit),
        (g * (share - both), unit, ratio),
        (g * (1 - 2 * share + both), unit, unit),
    )
    return Blanket(tuple(sorted(atom for atom in atoms if atom[0])))


def any_channel(ratio: Fraction) -> Blanket:
    """Return the blanket that hides least among all channels with no larger ratio.

    Feldman, McMillan, Talwar 2023: among n reports of such a channel two values differ by no more
    than `(A + D, C - A + 1 - D)` does, C ~ Bin(n - 1, 2 / (ratio + 1)), A ~ Bin(C, 1/2), with
    D ~ Bern(ratio / (ratio + 1)) or its complement: one report among those of this blanket. Values
    that differ less in total variation give the same pair thinned, which is post-processing.

    `ratio` has to bound `Q / m` of both values, whatever the policy promises of others. The pair of
    the variation ratio is no bound: under `high-low` with two of three values sensitive, epsilon 1,
    and one other device of the third value, `delta(0.8)` is 0.0395, and that pair says 0.0089.
    """
    return of_supports(ratio, Fraction(1, 2), Fraction(0))


def blankets_by_enumeration(
    channel: Channel, policy: Policy
) -> Mapping[Fraction, Collection[Blanket]]:
    """Return the different blankets of the policy's constraints, keyed by the pair's larger budget.

    Pairs that are protected in one direction only have none. If a budget has too many blankets,
    that of `any_channel` bounds them all; if some of their ratios are unbounded, the budget gets
    none.
    """
    weights = channel.weights
    least = [min(row.get(y, 0) for row in weights) for y in range(channel.outputs)]
    total = sum(weights[0].values())
    by_ratio: dict[Fraction, set[Blanket]] = defaultdict(set)
    pairs = dict.fromkeys((min(x, other), max(x, other)) for x, other, _ in policy.constraints())
    for value, other in pairs:
        there, back = policy.entry(value, other), policy.entry(other, value)
        if there is not None and back is not None:
            row, against = weights[value], weights[other]
            outputs = Counter(
                (row.get(y, 0), against.get(y, 0), least[y]) for y in row.keys() | against.keys()
            )
            by_ratio[max(there, back)].add(_of_outputs(outputs, total))
    return {budget: _few(blankets) for budget, blankets in by_ratio.items()}


def _of_outputs(outputs: Mapping[tuple[int, int, int], int], total: int) -> Blanket:
    """Return the blanket of counted triples `(Q[x, y], Q[x', y], m(y))` in units of `1 / total`."""
    masses: dict[tuple[Fraction, Fraction], Fraction] = defaultdict(Fraction)
    bare = []
    for (first, second, least), times in outputs.items():
        if least:
            ratios = Fraction(first, least), Fraction(second, least)
            masses[ratios] += Fraction(least * times, total)
        else:
            bare.append((Fraction(first * times, total), Fraction(second * times, total)))
    atoms = sorted((mass, *ratios) for ratios, mass in masses.items())
    return Blanket(tuple(atoms), tuple(sorted(bare)))


def _few(blankets: Collection[Blanket]) -> Collection[Blanket]:
    if len(blankets) <= MOST_BLANKETS:
        return blankets
    ratios = [blanket.ratio for blanket in blankets]
    known = [ratio for ratio in ratios if ratio is not None]
    return [any_channel(max(known))] if len(known) == len(ratios) else []
