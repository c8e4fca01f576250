"""What a collection gains by `workload = "published"`: reports on atoms of published queries."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ldpstream.estimators.planning.predictions import mean_variance, predicted_set_variances
from ldpstream.estimators.planning.workload import PlannedWorkload
from ldpstream.mechanisms.base.arrays import Floats
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.domains.atoms import Atoms, atoms_of
from ldpstream.mechanisms.domains.base import Domain
from ldpstream.mechanisms.exact.dyadic import float_below
from ldpstream.mechanisms.families.matrix.matrix import Matrix
from ldpstream.mechanisms.interface.mechanism import Mechanism
from ldpstream.mechanisms.policies.policy import BlockPolicy, Policy
from ldpstream.mechanisms.registry.proposals import Proposal, propose
from ldpstream.mechanisms.registry.registry import REPORTING_ATOMS

_IDS = frozenset(REPORTING_ATOMS) - {Matrix.id}
"""Those that need no policy besides epsilon and blocks."""


@dataclass(frozen=True, eq=False)
class OnAtoms:
    """The best mechanism on the atoms; `variance` is for one report, over the published ranges."""

    atoms: Atoms
    mechanism: Mechanism
    variance: float


def best_on_atoms(
    policy: Policy, domain: Domain, workload: PlannedWorkload, linear: Sequence[Floats]
) -> OnAtoms | None:
    """Return what reports about published ranges and `linear` queries alone would achieve.

    None if more than ranges is published, if values are not merged by that, or if no mechanism of
    one budget inside blocks is proposed for the policy.
    """
    if not workload.ranges or workload.quantiles or workload.estimated is not None:
        return None
    try:
        allowed = policy.block_budget()
        atoms = atoms_of(domain, workload.ranges, linear, allowed.blocks)
    except SpecError:
        return None
    if atoms.size == domain.size:
        return None
    merged = BlockPolicy(float_below(allowed.epsilon), atoms.merge_blocks(allowed.blocks))
    sets = [atoms.merge(values) for values in workload.ranges]
    shares = np.bincount(atoms.parts.of_value, workload.shares, atoms.size).astype(np.float64)
    compared = [
        OnAtoms(
            atoms,
            proposal.mechanism,
            mean_variance(
                predicted_set_variances(proposal.mechanism, sets, shares=shares),
                workload.range_queries,
                workload,
            ),
        )
        for proposal in propose(merged, atoms)
        if isinstance(proposal, Proposal) and proposal.mechanism.id in _IDS
    ]
    return min(compared, key=lambda reached: reached.variance, default=None)
