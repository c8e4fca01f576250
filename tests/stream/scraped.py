"""The metrics as Prometheus would parse them."""

from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from ldpstream.agents.engine.metrics import Metrics

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def tracked(pipeline: Any) -> Metrics:
    """Return metrics of a pipeline."""
    metrics = Metrics()
    metrics.track(pipeline)
    return metrics


def scrape(metrics: Metrics) -> Samples:
    """Return all samples of the text exposition."""
    text = metrics.exposition()[0].decode()
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(samples: Samples, name: str, **labels: str) -> float:
    return samples[name, frozenset(labels.items())]
