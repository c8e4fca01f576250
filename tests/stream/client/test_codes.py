"""Integer labels are codes, and times decimals: neither is rounded as measurements are."""

import csv
import io
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldpstream.agents.cli.python.reports import to_labels, to_times_ms
from ldpstream.agents.cli.terminal.labels import ShownLabels, label_text
from ldpstream.agents.config import read_config
from ldpstream.agents.document.build import build_document
from ldpstream.agents.document.columns import label_text as drawn_text
from ldpstream.agents.document.flat import document_csv
from ldpstream.agents.document.model import EstimateDocument
from ldpstream.agents.engine.gauges import query_gauges
from ldpstream.agents.state.context import WindowTotals
from ldpstream.mechanisms import ValueOutsideDomainError
from ldpstream.mechanisms.domains.parse import Labels as Named
from ldpstream.mechanisms.domains.parse import Size
from tests.seeded import SeededEntropy
from tests.stream.serving import MINUTE_MS, START_MS

CODES = [1234567890123, 1234567890124, 9007199254740992, 9007199254740993, -9007199254740993]
SHOPS: dict[str, Any] = {
    "mechanism": "randomized-response",
    "epsilon": 3.0,
    "domain": {"values": CODES},
    "partitions": 1,
    "minimum": 1,
    "window": {"size": "1m", "retention": "1h"},
    "publish": {"top": 5},
}


@pytest.fixture(scope="module")
def document() -> EstimateDocument:
    config = read_config({"collection": {"shops": SHOPS}}, base=Path()).collections["shops"]
    reports = config.spec.privatize(CODES * 100, entropy=SeededEntropy(1))
    statistic = np.zeros(config.spec.mechanism.statistic_size, dtype=np.int64)
    config.spec.mechanism.accumulate(statistic, reports)
    window = START_MS, START_MS + MINUTE_MS
    totals = WindowTotals(*window, statistic, len(reports), late=0, rejected=0)
    return build_document(config, totals, window=window, final=True)


def test_codes_have_all_their_digits_in_every_form(document: EstimateDocument):
    read = json.loads(document.to_json())
    assert sorted(one["value"] for one in read["distribution"]) == sorted(CODES)
    rows = csv.DictReader(io.StringIO(document_csv(document).decode()))
    assert sorted(row["name"] for row in rows if row["kind"] == "value") == sorted(map(str, CODES))
    gauges = {gauge.query for gauge in query_gauges(document, Named(tuple(CODES)))}
    assert gauges == {f"value:{code}" for code in CODES}
    pytest.importorskip("pandas")
    frame = document.to_frame()
    assert sorted(frame["label"].tolist()) == sorted(CODES)
    assert sorted(map(str, frame["label"])) == sorted(map(str, CODES))


@pytest.mark.parametrize(
    ("label", "text"),
    [
        *((code, str(code)) for code in CODES),
        ([CODES[0], CODES[3]], f"[{CODES[0]}, {CODES[3]}]"),
        ([1700000000123.0, 1700000000124.5], "[1700000000123, 1700000000124.5]"),
        ([0.3, 0.4], "[0.3, 0.4]"),
        (1 / 3, "0.333333333333333"),
        (-0.0, "0"),
    ],
)
def test_labels_in_a_terminal_keep_their_digits(label: Any, text: str):
    assert label_text(label) == ShownLabels().text(label) == text


@pytest.mark.parametrize(
    ("label", "text"),
    [
        (CODES[3], str(CODES[3])),
        ([1700000000.0, 1700003600.0], "1700000000 to 1700003600"),
        ([0.30000000000000004, 0.4], "0.3 to 0.4"),
    ],
)
def test_labels_in_a_plot_keep_their_digits(label: Any, text: str):
    assert drawn_text(label) == text


def test_codes_may_come_as_whole_floats_that_stand_for_one_integer():
    domain = Named(tuple(CODES))
    column = np.array([float(code) for code in CODES[:2]])
    assert domain.index(to_labels(column, domain)).tolist() == [0, 1]
    with_gap = to_labels(np.array([float(CODES[0]), np.nan]), domain)
    assert domain.index(with_gap[:1]).tolist() == [0]
    # 2^53 is also the double of 2^53 + 1.
    with pytest.raises(ValueOutsideDomainError):
        domain.index(to_labels(np.array([2.0**53, np.nan]), domain))
    assert to_labels(np.array([1.0, np.nan]), Size(5))[0] == 1


SPANS = (-(10**12), 0), (10**11, 4 * 10**12)
"""Milliseconds that do not look like seconds."""


def test_datetimes_lose_no_millisecond():
    epoch, rng = datetime(1970, 1, 1, tzinfo=UTC), np.random.default_rng(3)
    wanted = np.concatenate([rng.integers(low, high, 2000) for low, high in SPANS])
    moments = [epoch + timedelta(milliseconds=int(ms)) for ms in wanted]
    assert to_times_ms(moments, len(moments)).tolist() == wanted.tolist()
    before = epoch - timedelta(microseconds=10**10 + 1)
    assert to_times_ms([before], 1).tolist() == [-(10**7) - 1]
