"""The metric policy of a collection whose mechanism adds budgets over steps (L1)."""

from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.domains.interval import Interval
from ldpstream.mechanisms.domains.rounded_interval import RoundedInterval
from ldpstream.mechanisms.interface.settings import Settings
from ldpstream.mechanisms.policies.metric import MetricPolicy


def read_metric(settings: Settings, mechanism: str) -> MetricPolicy:
    """Return epsilon times the L1 distance or, where a `policy` names one, another L^p distance.

    A mechanism that runs with `MetricPolicy.step` for each index step keeps either.

    Raises:
        SpecError: for a domain without order, or a policy that is not an unscaled L^p metric.
    """
    domain, path = settings.domain, settings.path
    if not domain.ordered:
        raise SpecError(
            f"{path}.domain",
            f"an ordered domain with {mechanism} (size, sizes, grid or interval), got labels",
        )
    if "policy" in settings.keys:
        policy = settings.read_policy()
        if not isinstance(policy, MetricPolicy):
            raise SpecError(f"{path}.policy", f'metric = "l1", "l2" or "lp" with {mechanism}')
        if policy.scale is not None:
            raise SpecError(f"{path}.policy.scale", f"no scale with {mechanism}")
        return policy
    widths = domain.widths if isinstance(domain, Interval | RoundedInterval) else None
    rounded = isinstance(domain, RoundedInterval)
    return MetricPolicy(settings.read_step_epsilon(), domain.shape, widths, rounded)
