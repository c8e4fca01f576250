"""Policies by value: blocks, sensitive values, two values, matrices."""

from fractions import Fraction

from ldpstream.agents.privacy.factors import factor_text
from ldpstream.mechanisms.domains.parse import Domain, Lattice
from ldpstream.mechanisms.exact.dyadic import budget
from ldpstream.mechanisms.policies.matrix import MatrixPolicy
from ldpstream.mechanisms.policies.policy import BinaryPolicy, BlockPolicy, HighLowPolicy


def say_blocks(policy: BlockPolicy, domain: Domain) -> list[str]:
    """Say by what factor a report may favour a value of a block, and that blocks are disclosed."""
    factor, what = factor_text(budget(policy.epsilon)), name_of_values(domain)
    likelier = f"no report is more than {factor} times likelier for one than for the other"
    sizes = policy.blocks.sizes
    if policy.blocks.count == 1:
        return [f"Any two {what} are indistinguishable up to a factor {factor}: {likelier}."]
    smallest, largest = int(sizes.min()), int(sizes.max())
    extent = f"{largest:,}" if smallest == largest else f"{smallest:,} to {largest:,}"
    said = [
        f"Any two {what} of one block are indistinguishable up to a factor {factor}: {likelier}.",
        (
            f"The block itself is not hidden: a report tells which of {policy.blocks.count:,} "
            f"blocks, of {extent} {what}, it is from."
        ),
    ]
    if smallest == 1:
        alone = int((sizes == 1).sum())
        blocks = "block has" if alone == 1 else "blocks have"
        said.append(f"{alone:,} {blocks} a single value, which a report tells.")
    return said


def say_high_low(policy: HighLowPolicy, domain: Domain) -> list[str]:
    """Say that reports never mark a sensitive value, and may mark the others."""
    factor, what = factor_text(budget(policy.epsilon)), name_of_values(domain)
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


def say_binary(policy: BinaryPolicy, domain: Domain) -> list[str]:
    """Say both directions, which may differ."""
    labels = [str(domain.label(index)) for index in range(2)]
    return [
        _direction(policy.entry(value, 1 - value), labels[value], labels[1 - value])
        for value in range(2)
    ]


def _direction(entry: Fraction | None, value: str, other: str) -> str:
    if entry is None:
        return f"“{value}” is not hidden: a report may tell that it is not “{other}”."
    return (
        f"No report is more than {factor_text(entry)} times likelier for “{value}” "
        f"than for “{other}”."
    )


def say_matrix(policy: MatrixPolicy, domain: Domain) -> list[str]:
    """Say the range of the factors of protected pairs."""
    pairs = [policy.entry(x, other) for x, other in policy.pairs()]
    entries = [entry for entry in pairs if entry is not None]
    what = name_of_values(domain)
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


def name_of_values(domain: Domain) -> str:
    """Return what values of a domain are called: places of a grid, else values."""
    estimated = domain.estimated
    if isinstance(estimated, Lattice) and len(estimated.shape) == 2:
        return "places"
    return "values"
