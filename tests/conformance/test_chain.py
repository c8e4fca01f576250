"""Reports that are randomised again out of a permanent draw: what every chain promises."""

import numpy as np
import pytest

from ldpstream.mechanisms.base.canonical import canonical_json
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.exact.dyadic import log_bounds
from ldpstream.mechanisms.families.binary import Binary
from ldpstream.mechanisms.families.groups.mechanism import Groups
from ldpstream.mechanisms.families.optimal import Optimal
from ldpstream.mechanisms.families.weights.public import PublicWeights
from ldpstream.mechanisms.interface.mechanism import Mechanism
from ldpstream.mechanisms.policies.prior import PriorPolicy
from tests.conformance.instances import INSTANCES, certificate
from tests.seeded import SeededEntropy

CHAINED = {
    "binary",
    "block-hadamard",
    "groups",
    "high-low",
    "l1-bits",
    "l1-geometric",
    "optimal",
    "projective-geometry",
    "randomized-response",
    "subset-selection",
    "tree",
}


def larger(mechanism: Mechanism) -> object:
    if isinstance(mechanism, Binary):
        return [1.5 * mechanism.first, 1.5 * mechanism.second]
    if isinstance(mechanism, Optimal):
        return 1.5 * float(mechanism.policy.largest_loss())
    if isinstance(mechanism, Groups):
        return 1.5 * float(mechanism.policy.largest_loss())
    return 1.5 * getattr(mechanism, "epsilon", 1.0)


@pytest.mark.parametrize("name", INSTANCES)
def test_a_permanent_draw_has_the_form_of_the_reports_made_from_it(name: str):
    mechanism = INSTANCES[name]
    # Mechanisms with weights in the clear and those with priors have no chain.
    none = isinstance(mechanism, PublicWeights) or isinstance(mechanism.policy, PriorPolicy)
    if mechanism.id not in CHAINED or none:
        with pytest.raises(SpecError, match=r"hold\.epsilon: expected no such key.*hold = H"):
            mechanism.chain(larger(mechanism))
        return
    # Probabilities in units of 2^-64 leave no room for a larger budget.
    if ":huge" in name and mechanism.policy.largest_loss() > 44:
        with pytest.raises(SpecError, match=r"hold\.epsilon: expected .*further"):
            mechanism.chain(larger(mechanism))
        return
    permanent, chain = mechanism.chain(larger(mechanism))
    assert permanent.report_bytes == mechanism.report_bytes
    assert permanent.size == mechanism.size
    assert permanent.certify().passed
    canonical_json(list(chain.canonical()))
    values = np.arange(200, dtype=np.int64) % mechanism.size
    drawn = permanent.privatize(values, entropy=SeededEntropy(3))
    before = drawn.copy()
    sent = chain.again(drawn, SeededEntropy(4))
    assert np.array_equal(drawn, before)
    assert (sent.shape, sent.dtype) == (drawn.shape, drawn.dtype)
    read, valid = mechanism.decode(mechanism.encode(sent))
    assert valid.all()
    assert np.array_equal(read, sent)
    ratios = [chain.ratio(reports) for reports in (1, 2, 5, 64, 65)]
    assert ratios == sorted(ratios)
    # One report loses what the certificate says; of neighbours in a graph, a step alone loses less.
    once = max(loss.ratio for loss in certificate(mechanism).losses)
    apart = isinstance(mechanism, Optimal) or chain.steps > 1
    assert ratios[0] ** chain.steps >= once if apart else ratios[0] == once
    epoch = log_bounds(ratios[-1])[0] * chain.steps
    assert epoch <= float(permanent.policy.largest_loss()) * (1 + 1e-12)
