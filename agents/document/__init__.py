"""Estimate documents: their form, and how they are composed from exact totals."""

from ldpstream.agents.document.compose import compose, final_content
from ldpstream.agents.document.cost import answer_bytes
from ldpstream.agents.document.model import (
    Calibration,
    EstimateDocument,
    LinearEstimate,
    QuantileEstimate,
    RangeEstimate,
    ValueEstimate,
    Window,
)
from ldpstream.agents.query.options import EstimateOptions
from ldpstream.agents.query.ranges import Range

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
    "answer_bytes",
    "compose",
    "final_content",
]
