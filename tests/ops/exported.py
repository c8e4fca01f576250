"""The metrics that workers and gateways export."""

from typing import Any

from prometheus_client import CollectorRegistry

from ldpstream.agents.edge.gateway_app import GatewayMetrics
from ldpstream.agents.engine.gauges import PipelineCollector
from ldpstream.agents.engine.metrics import Metrics
from tests.stream.serving import RIDES, serve_collections

_SUFFIXES = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}


def exported() -> dict[tuple[str, str], tuple[str, set[str]]]:
    """Return kind and labels of every metric, by process and name (a counter's with `_total`)."""
    found: dict[tuple[str, str], tuple[str, set[str]]] = {}
    registries = {"worker": Metrics().registry, "gateway": GatewayMetrics([]).registry}
    for process, registry in registries.items():
        for family in registry.collect():
            name = f"{family.name}_total" if family.type == "counter" else family.name
            own = getattr(family, "_labelnames", ())
            found[process, name] = (family.type, set(own) or _labels(registry, family.name))
    gauges: Any = PipelineCollector(serve_collections({"rides": RIDES}), {}).describe()
    for family in gauges:
        found["worker", family.name] = (family.type, set(family._labelnames))
    return found


def samples() -> set[str]:
    """Return the names of all series."""
    return {
        name.removesuffix("_total") + suffix
        for (_, name), (kind, _) in exported().items()
        for suffix in _SUFFIXES.get(kind, [""])
    }


def _labels(registry: CollectorRegistry, name: str) -> set[str]:
    collector = registry._names_to_collectors.get(name)
    return set(getattr(collector, "_labelnames", ()))
