"""Mechanisms that a planner compares for a policy.

For each mechanism, a proposer chooses parameters for a given policy. A policy of the mechanism's
own form is used as it is; for any other the budgets are the largest that satisfy it (`budgets`).
Some proposals are what a user would write first, and do not satisfy every policy: the planner
checks with `policies.implication.implies` and names the pair that fails.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.domains.base import Domain
from ldpstream.mechanisms.exact.dyadic import float_below
from ldpstream.mechanisms.families.binary import Binary
from ldpstream.mechanisms.families.block.hadamard import BlockHadamard
from ldpstream.mechanisms.families.design.mechanism import RandomizedResponse
from ldpstream.mechanisms.families.design.projective_geometry import ProjectiveGeometry
from ldpstream.mechanisms.families.groups.high_low import HighLow
from ldpstream.mechanisms.families.groups.mechanism import Groups, best_groups, sensitive_groups
from ldpstream.mechanisms.families.l1.bits import L1Bits
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from ldpstream.mechanisms.families.matrix.matrix import Matrix
from ldpstream.mechanisms.families.matrix.strategy import STRATEGIES, Strategy
from ldpstream.mechanisms.families.subset.selection import SubsetSelection
from ldpstream.mechanisms.families.tree.tree import Tree
from ldpstream.mechanisms.interface.mechanism import Mechanism
from ldpstream.mechanisms.policies.groups import GroupPolicy
from ldpstream.mechanisms.policies.metric import MetricPolicy
from ldpstream.mechanisms.policies.policy import Policy


@dataclass(frozen=True)
class Proposal:
    """A mechanism for a policy; `variant` distinguishes proposals with the same id."""

    mechanism: Mechanism
    variant: str = ""


@dataclass(frozen=True)
class Unsuited:
    """A mechanism that cannot be proposed, and what it would need."""

    id: str
    needs: str


Proposer = Callable[[Policy, Domain], Iterator[Proposal]]
"""Yields proposals for a policy over a domain; raises SpecError if there is none."""


def propose(policy: Policy, domain: Domain) -> Iterator[Proposal | Unsuited]:
    """Yield the proposals of every mechanism for a policy over a domain of the same size.

    For localized information privacy they satisfy the stricter `Policy.by_entries`.
    """
    policy = policy.by_entries()
    for mechanism_id, proposer in PROPOSERS.items():
        try:
            yield from proposer(policy, domain)
        except SpecError as error:
            yield Unsuited(mechanism_id, error.expected)


def _binary(policy: Policy, _domain: Domain) -> Iterator[Proposal]:
    if policy.size != 2:
        raise SpecError("domain", f"2 values, got {policy.size}")
    first, second = policy.entry(0, 1), policy.entry(1, 0)
    if first is None and second is None:
        raise SpecError("policy", "a pair of values that is protected, got none")
    infinity = float("inf")
    budgets = (infinity if entry is None else float_below(entry) for entry in (first, second))
    yield Proposal(Binary(*budgets))


def _groups(policy: Policy, domain: Domain) -> Iterator[Proposal]:
    if isinstance(policy, GroupPolicy):
        yield Proposal(best_groups(policy), "own budgets")
    else:
        yield from _high_low(policy, domain, sensitive_groups)


def _high_low(
    policy: Policy,
    _domain: Domain,
    mechanism: Callable[[float, int, frozenset[int]], Mechanism] = HighLow,
) -> Iterator[Proposal]:
    allowed = policy.block_budget()
    if allowed.protected.size == policy.size:
        raise SpecError("policy", "some value that no budget protects, got none")
    sensitive = frozenset(allowed.protected.tolist())
    yield Proposal(mechanism(float_below(allowed.epsilon), policy.size, sensitive))


def _in_blocks(
    mechanism: Callable[..., Mechanism], policy: Policy, _: Domain
) -> Iterator[Proposal]:
    allowed = policy.block_budget()
    count = allowed.blocks.count
    variant = "one block" if count == 1 else f"{count} blocks"
    yield Proposal(mechanism(float_below(allowed.epsilon), allowed.blocks), variant)


def _tree(policy: Policy, domain: Domain) -> Iterator[Proposal]:
    if not domain.ordered:
        raise SpecError("domain", "an ordered domain, got labels")
    extents = tuple(extent for extent in domain.shape if extent > 1)
    dimensions = extents if len(extents) > 1 else ()
    yield from _in_blocks(partial(Tree, dimensions=dimensions), policy, domain)


def _on_steps(
    mechanism: Callable[..., Mechanism], policy: Policy, domain: Domain
) -> Iterator[Proposal]:
    """Propose an epsilon for each step: the policy's own, and the largest that satisfies it.

    For an L^p policy the mechanism takes p and computes the step itself.
    """
    if not domain.ordered:
        raise SpecError("domain", "an ordered domain, got labels")
    if isinstance(policy, MetricPolicy) and policy.scale is None:
        keys = {} if policy.p == 1 else {"p": policy.p}
        yield Proposal(mechanism(policy.epsilon, policy.shape, **keys))
        return
    step = policy.l1_budget(domain.shape)
    whole = policy.block_budget().epsilon
    if whole > step:
        yield Proposal(mechanism(float_below(whole), domain.shape), "epsilon a step")
    yield Proposal(mechanism(float_below(step), domain.shape), "largest step")


def _matrix(policy: Policy, domain: Domain) -> Iterator[Proposal]:
    """Propose the built-in strategies with equal scales; for labels, only the identity."""
    line = domain.ordered and sum(extent > 1 for extent in domain.shape) <= 1
    for name in STRATEGIES if line else ("identity",):
        yield Proposal(Matrix(policy, Strategy.built_in(name, policy.size)), name)


PROPOSERS: Mapping[str, Proposer] = MappingProxyType(
    {
        Binary.id: _binary,
        HighLow.id: _high_low,
        Groups.id: _groups,
        BlockHadamard.id: partial(_in_blocks, BlockHadamard),
        RandomizedResponse.id: partial(_in_blocks, RandomizedResponse),
        SubsetSelection.id: partial(_in_blocks, SubsetSelection),
        ProjectiveGeometry.id: partial(_in_blocks, ProjectiveGeometry),
        L1Bits.id: partial(_on_steps, L1Bits),
        L1Geometric.id: partial(_on_steps, L1Geometric),
        Matrix.id: _matrix,
        Tree.id: _tree,
    }
)
"""The proposers by mechanism id; a new mechanism adds a line here."""
