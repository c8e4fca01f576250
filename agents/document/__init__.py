"""Estimate documents: their models, and how they are built from exact totals.

The names here are the models. `build_document`, which needs all estimators, is imported from its
own module, so that programs that only read documents do not load them.
"""

from ldpstream.agents.config.query.options import EstimateOptions
from ldpstream.agents.config.query.queries import Range
from ldpstream.agents.document.entries import (
    Calibration,
    LinearEstimate,
    QuantileEstimate,
    RangeEstimate,
    ValueEstimate,
)
from ldpstream.agents.document.model import EstimateDocument, Window

__all__ = [
    "Calibration",
    "EstimateDocument",
    "EstimateOptions",
    "LinearEstimate",
    "QuantileEstimate",
    "Range",
    "RangeEstimate",
    "ValueEstimate",
    "Window",
]
