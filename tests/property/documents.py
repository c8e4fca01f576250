"""Collections for estimate documents, totals to make them from, and their content."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from jsonschema import Draft202012Validator

from ldpstream.agents.config import CollectionConfig, read_config
from ldpstream.agents.config.query.options import EstimateOptions
from ldpstream.agents.document.build import build_document
from ldpstream.agents.document.model import EstimateDocument, document_schema
from ldpstream.agents.state.context import WindowTotals
from tests.exact.enumeration import counted

LABELS = {
    "mechanism": "high-low",
    "epsilon": 1.0,
    "domain": {"values": ["a", "ä", 3]},
    "sensitive": ["ä"],
}
BLOCKS = {"mechanism": "block-hadamard", "epsilon": 1.0, "domain": {"size": 40, "blocks": 8}}
LINE = {
    "mechanism": "block-hadamard",
    "epsilon": 2.0,
    "domain": {"interval": [0.0, 10.0], "bins": 20},
}


def collection(table: dict[str, Any], **more: Any) -> CollectionConfig:
    tables = {"collection": {"c": {**table, "minimum": 0, **more}}}
    return read_config(tables, base=Path(), environment={}).collections["c"]


def totals(config: CollectionConfig, n: int, seed: int = 1) -> WindowTotals:
    mechanism = config.spec.mechanism
    values = np.random.default_rng(seed).binomial(mechanism.size - 1, 0.3, n)
    statistic = counted(mechanism, values, seed)
    return WindowTotals(1_795_255_200_000, 1_795_258_800_000, statistic, n, late=3, rejected=5)


def written(document: EstimateDocument) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    content = json.loads(document.to_json(), parse_constant=refuse)
    _validator().validate(content)
    return dict(content)


def answer(config: CollectionConfig, given: WindowTotals, **options: Any) -> dict[str, Any]:
    """Return the document of all reports with these options, as it is written."""
    asked = EstimateOptions(**options)
    return written(build_document(config, given, window=None, final=True, options=asked))


@cache
def _validator() -> Draft202012Validator:
    # Made once: checking the schema takes longer than checking a document.
    schema = document_schema()
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)
