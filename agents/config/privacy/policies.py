"""What each kind of policy means, in plain sentences."""

import math
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any, Final, NamedTuple

import numpy as np

from ldpstream.agents.config.privacy.factors import LARGEST_BUDGET, factor_text, width_text
from ldpstream.mechanisms.base.checks import number_text, rounded_text
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.domains.parse import Domain
from ldpstream.mechanisms.exact.dyadic import budget, exp_bounds
from ldpstream.mechanisms.policies.attributes import AttributesPolicy
from ldpstream.mechanisms.policies.composition import PublicWeightPolicy
from ldpstream.mechanisms.policies.graph import GraphPolicy
from ldpstream.mechanisms.policies.groups import GroupPolicy
from ldpstream.mechanisms.policies.lip import LipPolicy
from ldpstream.mechanisms.policies.matrix import MatrixPolicy
from ldpstream.mechanisms.policies.metric import MetricPolicy
from ldpstream.mechanisms.policies.policy import (
    BinaryPolicy,
    BlockPolicy,
    HighLowPolicy,
    Policy,
)
from ldpstream.mechanisms.policies.prior import PriorPolicy

LARGEST_ENUMERATED: Final = 256
"""Pairs of at most this many values are looked at one by one."""
_OF_RECORDS: Final = (
    "A report is about one of {} attributes, drawn whatever the values are. However many of them "
    "two records differ in, it distinguishes them no better than the one that is hidden least:"
)
_OF_PUBLIC_WEIGHTS: Final = (
    "Weights are not hidden: a report holds its weight as it is, and the above is about values "
    "with the same weight."
)


def policy_sentences(policy: Policy, domain: Domain) -> list[str]:
    """Return what a policy means for the values of a domain."""
    return _TEXTS.get(type(policy), _OF_PAIRS).sentences(policy, domain)


def epsilon_text(policy: Policy) -> str:
    """Return the configured budget as text, with its unit unless it holds for any two values.

    >>> epsilon_text(MetricPolicy(0.4, (50,), widths=(2.0,)))
    '0.4 for each 2'
    """
    return _TEXTS.get(type(policy), _OF_PAIRS).epsilon(policy)


def _attributes(policy: AttributesPolicy, domain: Domain) -> list[str]:
    """Say what records lose, and then what the values of each attribute do."""
    each = zip(policy.members.items(), domain.members.values(), strict=True)
    sentences = [
        f"{name}: {sentence}"
        for (name, member), of in each
        for sentence in policy_sentences(member, of)
    ]
    return [_OF_RECORDS.format(len(policy.names)), *sentences]


def _attributes_epsilon(policy: AttributesPolicy) -> str:
    texts = dict.fromkeys(map(epsilon_text, policy.parts))
    return ", ".join(texts) if len(texts) <= 2 else f"one of {len(texts)} budgets"


def _public_weights(policy: PublicWeightPolicy, domain: Domain) -> list[str]:
    """Say what holds for the values, and that it does not hold for weights."""
    return [*policy_sentences(policy.values, domain.estimated), _OF_PUBLIC_WEIGHTS]


def _blocks(policy: BlockPolicy, domain: Domain) -> list[str]:
    """Say by what factor a report may favour a value of a block, and that blocks are disclosed."""
    factor, what = factor_text(budget(policy.epsilon)), _name_of_values(domain)
    likelier = f"no report is more than {factor} times likelier for one than for the other"
    if policy.blocks.count == 1:
        return [f"Any two {what} are indistinguishable up to a factor {factor}: {likelier}."]
    return [
        f"Any two {what} of one block are indistinguishable up to a factor {factor}: {likelier}.",
        *_disclosed_blocks(policy.blocks, what),
    ]


def _disclosed_blocks(blocks: Blocks, what: str) -> list[str]:
    """Say that a report tells the block."""
    sizes = blocks.sizes
    smallest, largest = int(sizes.min()), int(sizes.max())
    extent = f"{largest:,}" if smallest == largest else f"{smallest:,} to {largest:,}"
    sentences = [
        (
            f"The block itself is not hidden: a report tells which of {blocks.count:,} "
            f"blocks, of {extent} {what}, it is from."
        ),
    ]
    if smallest == 1:
        alone = int((sizes == 1).sum())
        whose = "block has" if alone == 1 else "blocks have"
        sentences.append(f"{alone:,} {whose} a single value, which a report tells.")
    return sentences


def _groups(policy: GroupPolicy, domain: Domain) -> list[str]:
    """Say the factors inside groups and towards other groups, and what is not hidden."""
    what, sizes, place = _name_of_values(domain), policy.groups.sizes, policy.place
    several = [bool((sizes[place == i] > 1).any()) for i in range(len(policy.budgets))]
    inside = [one.inside for one, some in zip(policy.budgets, several, strict=True) if some]
    outside = [one.outside for one in policy.budgets if math.isfinite(one.outside)]
    blocks = policy.disclosed_blocks
    group = "group" if blocks is None else "block"
    alike = all(one.inside == one.outside for one in policy.budgets)
    sentences = []
    if inside and not alike:
        factor = _factors(map(budget, inside), group)
        sentences.append(
            f"Two {what} of one {group} are indistinguishable up to a factor {factor}."
        )
    if blocks is not None:
        return [*sentences, *_disclosed_blocks(blocks, what)]
    hidden = np.isfinite([one.outside for one in policy.budgets])[place]
    values = int(sizes[hidden].sum())
    factor = _factors(map(budget, outside), group)
    other = "any other" if alike else "one of another group"
    protected = "All" if values == policy.size else f"{values:,} of {policy.size:,}"
    sentences.append(
        f"{protected} {what} are protected: no report is likelier for one of them than for {other} "
        f"by more than a factor of {factor}."
    )
    if plain := int((~hidden & (sizes == 1)).sum()):
        sentences.append(f"{plain:,} {what} are not hidden: a report may tell them.")
    if exposed := int((~hidden & (sizes > 1)).sum()):
        which = "1 group is" if exposed == 1 else f"{exposed:,} groups are"
        sentences.append(f"{which} not hidden: a report may tell that a value is in it.")
    return sentences


def _factors(budgets: Iterable[Fraction], of: str) -> str:
    """Return the factors of the least and the largest budget, which depend on something."""
    listed = sorted(budgets)
    low, high = factor_text(listed[0]), factor_text(listed[-1])
    return high if low == high else f"{low} to {high}, depending on the {of}"


def _groups_epsilon(policy: GroupPolicy) -> str:
    sizes = policy.groups.sizes
    of = [(one, sizes[policy.place == i].max() > 1) for i, one in enumerate(policy.budgets)]
    inside = _span_text(one.inside for one, several in of if several)
    if policy.disclosed_blocks is not None:
        return f"{inside} in a block"
    outside = _span_text(one.outside for one, _ in of if math.isfinite(one.outside))
    if all(one.inside == one.outside for one, _ in of):
        return f"{outside}, depending on the value"
    return f"{inside} in a group, {outside} outside"


def _blocks_epsilon(policy: BlockPolicy) -> str:
    return f"{number_text(policy.epsilon)}{' in a block' if policy.blocks.count > 1 else ''}"


def _high_low(policy: HighLowPolicy, domain: Domain) -> list[str]:
    """Say that reports never mark a sensitive value, and may mark the others."""
    factor, what = factor_text(budget(policy.epsilon)), _name_of_values(domain)
    sensitive = len(policy.sensitive)
    if sensitive == policy.size:
        return [f"Any two {what} are indistinguishable up to a factor {factor}."]
    return [
        (
            f"{sensitive:,} of {policy.size:,} {what} are sensitive: no report is more than "
            f"{factor} times likelier for a sensitive one than for any other, so a report never "
            "proves that somebody has it."
        ),
        f"The other {policy.size - sensitive:,} are not hidden: a report may tell them.",
    ]


def _high_low_epsilon(policy: HighLowPolicy) -> str:
    all_of_them = len(policy.sensitive) == policy.size
    return f"{number_text(policy.epsilon)}{'' if all_of_them else ' of sensitive values'}"


def _binary(policy: BinaryPolicy, domain: Domain) -> list[str]:
    """Say both directions, which may differ."""
    labels = [str(domain.label(index)) for index in range(2)]
    return [
        _direction(policy.entry(value, 1 - value), labels[value], labels[1 - value])
        for value in range(2)
    ]


def _binary_epsilon(policy: BinaryPolicy) -> str:
    return _span_text(e for e in (policy.first, policy.second) if math.isfinite(e))


def _direction(entry: Fraction | None, value: str, other: str) -> str:
    if entry is None:
        return f"“{value}” is not hidden: a report may tell that it is not “{other}”."
    return (
        f"No report is more than {factor_text(entry)} times likelier for “{value}” "
        f"than for “{other}”."
    )


def _matrix(policy: MatrixPolicy, domain: Domain) -> list[str]:
    """Say the range of the factors of protected pairs."""
    pairs = [policy.entry(x, other) for x, other in policy.pairs()]
    entries = [entry for entry in pairs if entry is not None]
    what = _name_of_values(domain)
    if not entries:
        return [f"No {what} are hidden from each other."]
    low, high = factor_text(min(entries)), factor_text(max(entries))
    extent = f"{high}" if low == high else f"{low} to {high}, depending on the two"
    protected = "Any two" if len(entries) == len(pairs) else f"{len(entries):,} ordered pairs of"
    return [
        (
            f"{protected} {what} are protected: no report is likelier for the first than for the "
            f"second by more than a factor of {extent}."
        )
    ]


def _name_of_values(domain: Domain) -> str:
    """Return what values of a domain are called: places of a grid, else values."""
    estimated = domain.estimated
    if estimated.whole and len(estimated.shape) == 2:
        return "places"
    return "values"


def _metric(policy: MetricPolicy, domain: Domain) -> list[str]:
    """Say the factor of a step, how steps add up, and the factor of the domain's two ends."""
    what, unit = _name_of_values(domain), budget(policy.epsilon)
    factor = factor_text(unit)
    far = policy.budget_of(tuple(extent - 1 for extent in policy.shape))
    sentences = [
        (
            f"Two {what} one step apart are indistinguishable up to a factor {factor}: no report "
            "is more than that times likelier for one than for the other."
        ),
        (
            f"{_farther(policy, factor)} The two farthest {what} are distinguishable up to a "
            f"factor {factor_text(far)}."
        ),
    ]
    if policy.scale is not None:
        factors = ", ".join(f"{number:g}" for number in policy.scale)
        sentences.append(f"A step of each dimension counts as {factors} steps.")
    if domain.largest_weight is not None:
        sentences.append("A weight that is larger by one counts as one step farther.")
    if policy.widths is not None:
        sentences.append(_of_numbers(policy, unit))
    return sentences


def _metric_epsilon(policy: MetricPolicy) -> str:
    # Numbers rounded at random lose the mean of their two neighbours.
    epsilon = math.expm1(policy.epsilon) if policy.rounded else policy.epsilon
    widths = set(policy.widths or ())
    each = f"for each {width_text(widths.pop())}" if len(widths) == 1 else "a step"
    return f"{rounded_text(epsilon)} {each}"


def _farther(policy: MetricPolicy, factor: str) -> str:
    power = f"d steps apart, up to {factor}^d"
    if len([extent for extent in policy.shape if extent > 1]) == 1:
        return f"Each further step multiplies the factor once more: {power}."
    if policy.p == 1:
        return f"Steps of all dimensions add up, and each multiplies the factor: {power}."
    if math.isinf(policy.p):
        return f"The largest number of steps of any dimension counts: {power}."
    if policy.p == 2:
        return f"Distances are straight ones, in steps: {power}."
    return f"Distances are those of the L{policy.p} norm, in steps: {power}."


def _of_numbers(policy: MetricPolicy, unit: Fraction) -> str:
    assert policy.widths is not None
    widths = ", ".join(map(width_text, policy.widths))
    if policy.rounded:
        # Numbers within a step lose the mean of the two ends: (e^step - 1) for each width.
        for_width = exp_bounds(min(unit, Fraction(LARGEST_BUDGET)))[1] - 1
        return (
            "Numbers are rounded at random to one of the two nearest values, so any two of "
            f"them one width apart ({widths}) are indistinguishable up to a factor "
            f"{factor_text(for_width)}, nearer ones up to a proportionally smaller one."
        )
    return (
        f"Values are bins of width {widths}: two numbers on different sides of an edge are a whole "
        "step apart, however near they are; those in one bin are indistinguishable."
    )


def _graph(policy: GraphPolicy, domain: Domain) -> list[str]:
    """Say the factors of edges, and that they multiply along paths."""
    what, extent = _name_of_values(domain), _factors(policy.arcs.values(), "edge")
    sentences = [
        (
            f"Two {what} that an edge of the policy's graph joins are indistinguishable up to a "
            f"factor {extent}; along a path of edges the factors multiply."
        ),
    ]
    if policy.directed:
        sentences.append(
            "Edges are directed: the two directions of a pair may have different factors."
        )
    if policy.unprotected_pairs:
        sentences.append(
            f"{policy.unprotected_pairs:,} ordered pairs have no path: they are not hidden."
        )
    return sentences


def _graph_epsilon(policy: GraphPolicy) -> str:
    return f"{_span_text(policy.arcs.values())} an edge"


def _lip(policy: LipPolicy, _domain: Domain) -> list[str]:
    """Say how far a report moves the odds for those who know the prior, and the implied LDP."""
    epsilons = sorted({level.epsilon for level in policy.levels})
    factors = [factor_text(epsilon) for epsilon in epsilons]
    sentences = [
        _for_priors(
            f"whoever knows the prior of a device that reported with factor {', '.join(factors)}"
            if len(factors) > 1
            else "whoever knows the prior of a device",
            "that factor" if len(factors) > 1 else f"a factor {factors[0]}",
        ),
        (
            f"Whatever the priors are, no report is more than {factor_text(policy.implied)} times "
            "likelier for one value than for the other."
        ),
    ]
    if len(policy.levels) > 1:
        sentences.append(
            f"The level of prior and budget is not hidden: a report tells which of "
            f"{len(policy.levels):,} levels it is from."
        )
    return sentences


def _prior(policy: PriorPolicy, _domain: Domain) -> list[str]:
    """Say what `_lip` says, for any number of values with one prior."""
    implied: Fraction = 2 * policy.budget
    return [
        _for_priors("whoever knows the prior", f"a factor {factor_text(policy.budget)}"),
        (
            f"Whatever the prior is, no report is more than {factor_text(implied)} times likelier "
            "for one value than for another."
        ),
    ]


def _priors_epsilon(policy: LipPolicy | PriorPolicy) -> str:
    return f"{_span_text(policy.least_budgets())} from a prior"


def _for_priors(who: str, factor: str) -> str:
    return (
        f"To {who}, a report changes the probability of each value by at most {factor}, up or down."
    )


def _by_pairs(policy: Policy, _domain: Domain) -> list[str]:
    if policy.size > LARGEST_ENUMERATED:
        return ["How well two values are hidden from each other depends on the two: see certify."]
    largest: Fraction = max((budget for *_, budget in policy.constraints()), default=Fraction(0))
    return [
        (
            "How well two values are hidden from each other depends on the two: a report is at "
            f"most {factor_text(largest)} times likelier for one of a protected pair than for "
            "the other."
        )
    ]


def _pairs_epsilon(policy: Policy) -> str:
    if policy.size > LARGEST_ENUMERATED:
        return "depends on the values"
    return _span_text(budget for *_, budget in policy.constraints())


def _span_text(budgets: Iterable[float | Fraction]) -> str:
    values = sorted({float(budget) for budget in budgets})
    if not values:
        return "none"
    return " to ".join(rounded_text(budget) for budget in dict.fromkeys((values[0], values[-1])))


class PolicyTexts(NamedTuple):
    """What is said of one kind of policy: sentences for a domain, and the budget with its unit."""

    sentences: Callable[[Any, Domain], list[str]]
    epsilon: Callable[[Any], str]


_TEXTS: Final[Mapping[type[Policy], PolicyTexts]] = {
    AttributesPolicy: PolicyTexts(_attributes, _attributes_epsilon),
    BinaryPolicy: PolicyTexts(_binary, _binary_epsilon),
    BlockPolicy: PolicyTexts(_blocks, _blocks_epsilon),
    GraphPolicy: PolicyTexts(_graph, _graph_epsilon),
    GroupPolicy: PolicyTexts(_groups, _groups_epsilon),
    HighLowPolicy: PolicyTexts(_high_low, _high_low_epsilon),
    LipPolicy: PolicyTexts(_lip, _priors_epsilon),
    MatrixPolicy: PolicyTexts(_matrix, _pairs_epsilon),
    MetricPolicy: PolicyTexts(_metric, _metric_epsilon),
    PriorPolicy: PolicyTexts(_prior, _priors_epsilon),
    PublicWeightPolicy: PolicyTexts(_public_weights, lambda policy: epsilon_text(policy.values)),
}
_OF_PAIRS: Final = PolicyTexts(_by_pairs, _pairs_epsilon)
"""What is said of other policies, such as sums."""
