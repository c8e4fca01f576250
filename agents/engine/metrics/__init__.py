"""Prometheus metrics of one worker process, on a registry of its own."""

from ldpstream.agents.engine.metrics.counters import Metrics

__all__ = ["Metrics"]
