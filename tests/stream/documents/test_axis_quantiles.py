"""Quantiles of each coordinate of values in several dimensions."""

from typing import Any

import numpy as np
import pytest

from ldpstream.agents.cli.python.reports import define_collection
from ldpstream.agents.document.build import build_document
from ldpstream.agents.document.flat import document_rows
from ldpstream.agents.document.model import EstimateDocument
from ldpstream.agents.state.context import WindowTotals
from ldpstream.agents.web.estimates import one_axis
from ldpstream.mechanisms.base.errors import QueryError
from tests.exact.enumeration import accumulated
from tests.seeded import SeededEntropy

MECHANISMS: dict[str, dict[str, Any]] = {
    "l1-bits": {"epsilon": 4.0, "domain": {"sizes": [6, 9]}},
    "l1-geometric": {"epsilon": 4.0, "domain": {"sizes": [6, 9]}},
    "block-hadamard": {"epsilon": 6.0, "domain": {"sizes": [6, 9]}},
    "tree": {"epsilon": 6.0, "domain": {"sizes": [6, 9]}},
    "private weights": {
        "mechanism": "l1-bits",
        "epsilon": 4.0,
        "domain": {"sizes": [6, 9]},
        "weights": {"private": 3},
    },
}
AXES: dict[str, Any] = {"epsilon": 4.0, "domain": {"sizes": [6, 9]}}
LINE: dict[str, Any] = {"domain": {"size": 6}}
N = 4000


def document_of(keys: dict[str, Any], values: np.ndarray, n: int = N) -> EstimateDocument:
    publish = {"quantiles": [0.15, 0.4], "top": 3}
    collection = define_collection("c", **{"minimum": 0, "publish": publish, **keys})
    mechanism, entropy = collection.spec.mechanism, SeededEntropy(3)
    if collection.spec.domain.estimated is not collection.spec.domain:
        values = values * 4 + 1
    statistic = accumulated(mechanism, mechanism.privatize(values[:n], entropy=entropy))
    totals = WindowTotals(0, 3_600_000, statistic, n, late=0, rejected=0)
    return build_document(collection, totals, window=None, final=True)


@pytest.mark.parametrize("name", MECHANISMS)
def test_they_are_those_of_the_coordinates(name: str):
    rng = np.random.default_rng(5)
    columns = rng.binomial(5, 0.6, N), rng.binomial(8, 0.3, N)
    keys = {"mechanism": name, **MECHANISMS[name]}
    document = document_of(keys, np.ravel_multi_index(columns, (6, 9)))
    assert document.quantiles == []
    found = {(one.axis, one.p): one for one in document.axis_quantiles}
    assert list(found) == [(0, 0.15), (0, 0.4), (1, 0.15), (1, 0.4)]
    for (axis, p), one in found.items():
        truth = np.quantile(columns[axis], p, method="inverted_cdf")
        assert one.value == truth
        assert one.low <= truth <= one.high
    rows = [row for row in document_rows(document) if "quantile" in row]
    assert ["axis 0" in row for row in rows] == [True, True, False, False]


def test_coordinates_of_bins_are_bins():
    domain = {"interval": [[0.0, 1.0], [0.0, 10.0]], "bins": [2, 5]}
    keys = {"mechanism": "l1-bits", "epsilon": 9.0, "domain": domain}
    document = document_of(keys, np.full(N, 7))
    assert [one.value for one in document.axis_quantiles] == [[0.5, 1.0]] * 2 + [[4.0, 6.0]] * 2
    empty = document_of(keys, np.full(N, 7), 0)
    assert {one.value for one in empty.axis_quantiles} == {None}


def test_comparisons_and_series_leave_them_out_or_refuse_them():
    """Published ones are left out; whoever asks for them is told."""
    publish = {"quantiles": [0.5]}
    grid = define_collection("c", mechanism="l1-bits", publish=publish, **AXES)
    domain = grid.spec.domain
    assert one_axis(grid.options, domain, explicit=False).quantiles == ()
    with pytest.raises(QueryError, match="one ordered dimension"):
        one_axis(grid.options, domain, explicit=True)
    line = define_collection("c", mechanism="l1-bits", publish=publish, **{**AXES, **LINE})
    assert one_axis(line.options, line.spec.domain, explicit=True).quantiles == (0.5,)
