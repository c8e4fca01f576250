"""Values and times as users have them: lists, arrays, columns of pandas, pyarrow and others."""

import csv
import io
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ldpstream as ldp
from ldpstream.agents.cli.python.reports import to_labels, to_times_ms
from ldpstream.agents.cli.terminal.labels import ShownLabels, label_text
from ldpstream.agents.config import read_config
from ldpstream.agents.document.build import build_document
from ldpstream.agents.document.columns import label_text as drawn_text
from ldpstream.agents.document.flat import document_csv
from ldpstream.agents.document.model import EstimateDocument
from ldpstream.agents.engine.gauges import query_gauges
from ldpstream.agents.state.context import WindowTotals
from ldpstream.mechanisms.base.errors import ValueOutsideDomainError
from ldpstream.mechanisms.domains.parse import Labels as Named
from ldpstream.mechanisms.domains.parse import Size
from tests.seeded import SeededEntropy
from tests.stream.modes import AGES, GRID, MODES, VALUES, draw
from tests.stream.serving import MINUTE_MS, START_MS

PEOPLE = ldp.define_collection(
    "people",
    mechanism="randomized-response",
    epsilon=1.0,
    domain={"attributes": {"age": {"size": 9}, "mode": {"values": ["bus", "car"]}}},
)


class Column:
    """A column of another library: not a sequence, but convertible to an array."""

    def __init__(self, values: list[Any], name: str) -> None:
        setattr(self, name, lambda *_, **__: np.array(values))


@pytest.mark.parametrize(
    "given",
    [
        ["bus", "car"],
        ("bus", "car"),
        np.array(["bus", "car"]),
        np.array([["bus"], ["car"]]),
        np.array(["bus", "car"], dtype=object),
        iter(["bus", "car"]),
        Column(["bus", "car"], "__array__"),
        Column(["bus", "car"], "to_numpy"),
    ],
)
def test_labels_come_in_any_form(given: Any):
    if isinstance(given, Column) and hasattr(given, "__array__"):
        # The protocol is looked up on the class.
        given = type("Array", (), {"__array__": lambda *_, **__: np.array(["bus", "car"])})()
    found = draw(MODES, given)
    assert found.reports.tolist() == draw(MODES, ["bus", "car"]).reports.tolist()


@pytest.mark.parametrize(
    "given",
    [
        [[0, 1], [2, 3]],
        np.array([[0, 1], [2, 3]]),
        np.array([[0.0, 1.0], [2.0, 3.0]]),
        np.array([[0, 1], [2, 3]], dtype=object),
        np.array([[0, 1], [2, 3]], dtype=np.uint8),
    ],
)
def test_coordinates_come_in_any_form(given: Any):
    assert draw(GRID, given).reports.tolist() == draw(GRID, [(0, 1), (2, 3)]).reports.tolist()


@pytest.mark.parametrize("given", ["bus", {"bus": 1}, {"bus", "car"}, 3, np.array(3), None])
def test_other_types_are_refused(given: Any):
    with pytest.raises(TypeError, match="expected a list, an array or a column of values"):
        ldp.privatize(MODES, given)


def test_pandas_and_pyarrow_go_in_and_pandas_comes_out():
    pd = pytest.importorskip("pandas")
    pa = pytest.importorskip("pyarrow")
    labels, rows = ["bus", "car"] * 5, {"row": [0, 2], "column": [1, 3]}
    wanted = draw(MODES, labels).reports.tolist()
    for given in (
        pd.Series(labels),
        pd.Series(labels, dtype="category"),
        pd.DataFrame({"mode": labels}),
        pa.array(labels),
        pa.chunked_array([labels]),
        pa.table({"mode": labels}),
    ):
        assert draw(MODES, given).reports.tolist() == wanted, type(given)
    for given in (pd.DataFrame(rows), pa.table(rows)):
        assert draw(GRID, given).reports.tolist() == draw(GRID, [(0, 1), (2, 3)]).reports.tolist()
    gaps = draw(AGES, pd.Series([1, None, 300]), skip_bad=True, clamp=True)
    assert (len(gaps), gaps.skipped, gaps.clamped) == (2, 1, 1)
    moments = pd.to_datetime(["2026-11-21T10:00:00Z", "2026-11-21T10:00:01Z"])
    timed = draw(MODES, labels[:2], times=pd.Series(moments))
    assert timed.times_ms.tolist() == [START_MS, START_MS + 1000]
    document = ldp.estimate(draw(MODES, labels * 100))
    frame = document.to_frame()
    assert frame.columns[:4].tolist() == ["label", "share", "low", "high"]
    assert frame.share[0] == document.distribution[0].share
    assert sorted(frame.label) == sorted(VALUES)
    assert pa.table(document.to_columns()).num_rows == 4
    several = ldp.to_frame([document, document])
    assert several.columns[:4].tolist() == ["start", "end", "size", "label"]
    assert len(several) == 8


@pytest.mark.parametrize(
    ("collection", "given"),
    [
        (AGES, np.ma.array([1.0, 2.0], mask=[0, 1])),
        (AGES, np.ma.array([1, 2], mask=[0, 1])),
        (AGES, [1.0, np.ma.masked]),
        (AGES, [1.0, True]),
        (MODES, np.ma.array(["bus", "car"], mask=[0, 1])),
        (MODES, np.ma.array(["bus", "car"], dtype=object, mask=[0, 1])),
        (GRID, np.ma.array([[0, 1], [2, 3]], mask=[[0, 0], [0, 1]])),
        (GRID, [[0, 1], [2, True]]),
    ],
)
def test_what_is_missing_or_no_number_is_refused(collection: Any, given: Any):
    domain = collection.spec.domain
    for refuse in (
        lambda: ldp.privatize(collection, given),
        lambda: domain.index(given),
        lambda: collection.spec.frame(given, times_ms=[START_MS] * 2),
    ):
        with pytest.raises(ValueOutsideDomainError) as found:
            refuse()
        assert found.value.position == 1
    assert len(draw(collection, given[:1])) == 1


def test_tables_of_any_library_hold_records():
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    columns = {"mode": ["car", "bus"], "of no use": [0, 0], "age": [1, 2]}
    wanted = draw(PEOPLE, columns).reports.tolist()
    rows = [("car", 1), ("bus", 2)]
    kinds = np.dtype([("mode", "U3"), ("age", "i8")])
    for given in (pd.DataFrame(columns), pa.table(columns), np.array(rows, dtype=kinds)):
        assert draw(PEOPLE, given).reports.tolist() == wanted, type(given)
    masked = np.ma.array(rows, dtype=kinds, mask=[(0, 0), (0, 1)])
    with pytest.raises(ValueOutsideDomainError, match="position 1: expected as age an integer"):
        ldp.privatize(PEOPLE, masked)
    assert draw(PEOPLE, masked, skip_bad=True).skipped == 1
    twice = pa.Table.from_arrays([pa.array([1])] * 3, names=["age", "age", "mode"])
    for given in (twice, pd.DataFrame([[1, 2, "bus"]], columns=["age", "age", "mode"])):
        with pytest.raises(ValueError, match="age: expected a column of this name, once"):
            ldp.privatize(PEOPLE, given)
    with pytest.raises(TypeError, match="expected a table, a mapping of columns or a list of map"):
        ldp.privatize(PEOPLE, np.array([[1, 2]]))


def test_a_float_that_stands_for_several_integers_is_no_label():
    codes = ldp.define_collection(
        "codes",
        mechanism="randomized-response",
        epsilon=1.0,
        domain={"values": [7, 16_777_216, 16_777_217, 2**53]},
    )
    assert len(draw(codes, np.array([16_777_217.0, 7.0]))) == 2
    for given in (np.array([7, 16_777_217], dtype=np.float32), np.array([7.0, 2.0**53])):
        with pytest.raises(ValueOutsideDomainError) as found:
            ldp.privatize(codes, given)
        assert found.value.position == 1
    # Beyond int64, which only long doubles may hold as integers.
    with pytest.raises(ValueOutsideDomainError):
        ldp.privatize(codes, np.array([2.0**64 + 7], dtype=np.longdouble))


def test_masked_attributes_times_and_priors_are_refused():
    ages = np.ma.array([1, 2], mask=[0, 1])
    with pytest.raises(ValueOutsideDomainError, match="position 1"):
        ldp.privatize(GRID, np.ma.array([[0.0, 1.0], [2.0, 3.0]], mask=[[0, 0], [1, 0]]))
    with pytest.raises(ValueOutsideDomainError, match="position 1: expected as age an integer"):
        ldp.privatize(PEOPLE, {"age": ages, "mode": ["bus", "car"]})
    times = np.ma.array([START_MS] * 2, mask=[0, 1])
    with pytest.raises(ValueError, match="time at position 1"):
        ldp.privatize(MODES, ["bus", "car"], times=times)
    with pytest.raises(ValueError, match="expected one time for each label"):
        MODES.spec.frame(["bus", "car"], times_ms=times)
    for prior in (np.ma.array([1.0] * 4, mask=[0, 0, 0, 1]), ["1_0"] * 4, [True] * 4):
        with pytest.raises(ValueError, match="prior: "):
            ldp.plan(MODES, respondents=9, prior=prior, search_seconds=0)


@pytest.mark.parametrize("collection", [AGES, MODES])
def test_missing_cells_of_pandas_and_pyarrow_are_refused(collection: Any):
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    values = ["bus", None] if collection is MODES else [1, None]
    kind = "string" if collection is MODES else "Int64"
    for given in (pd.array(values, dtype=kind), pd.Series(values), pa.array(values)):
        with pytest.raises(ValueOutsideDomainError) as found:
            ldp.privatize(collection, given)
        assert found.value.position == 1
        assert draw(collection, given, skip_bad=True).skipped == 1


def test_columns_of_times_need_a_zone():
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    zoned = pd.Series(pd.to_datetime(["2026-11-21T10:00:00Z"] * 2))
    naive = zoned.dt.tz_localize(None)
    arrow = pd.ArrowDtype(pa.timestamp("us"))
    for given in (zoned, zoned.dt.tz_convert("Asia/Tokyo"), pa.array(zoned)):
        assert draw(MODES, ["bus"] * 2, times=given).times_ms.tolist() == [START_MS] * 2
    for given in (naive, pd.DatetimeIndex(naive), pa.array(naive), naive.astype(arrow)):
        with pytest.raises(ValueError, match="expected a column of times with a zone"):
            ldp.privatize(MODES, ["bus"] * 2, times=given)
    with pytest.raises(ValueError, match="time at position 0: expected a datetime with a zone"):
        ldp.privatize(MODES, ["bus"] * 2, times=list(naive))


@pytest.mark.parametrize(
    "times",
    [
        np.array([1 << 62, 0], dtype="datetime64[s]"),
        np.array([9_000, 0], dtype="datetime64[Y]"),
        np.array(["NaT", "2026-11-21"], dtype="datetime64[ns]"),
        np.ma.array(np.array([0, 1], dtype="datetime64[ns]"), mask=[1, 0]),
        [10**30, START_MS],
        np.array([10**19, START_MS], dtype=np.uint64),
    ],
)
def test_times_do_not_overflow(times: Any):
    message = r"time at position 0: expected|expected one time for each"
    with pytest.raises(ValueError, match=message):
        ldp.privatize(MODES, ["bus"] * 2, times=times)


def test_times_come_in_any_form_and_are_kept_where_all_have_one():
    moment = datetime(2026, 11, 21, 10, tzinfo=UTC)
    for times in (
        [START_MS] * 2,
        ["2026-11-21T10:00:00Z", "2026-11-21T11:00:00+01:00"],
        [moment, moment],
        np.array(["2026-11-21T10:00:00"] * 2, dtype="datetime64[s]"),
    ):
        assert draw(MODES, ["bus"] * 2, times=times).times_ms.tolist() == [START_MS] * 2
    timed, untimed = draw(MODES, ["bus"], times=[START_MS]), draw(MODES, ["bus"])
    assert (timed + ldp.privatize(MODES, [])).times_ms.tolist() == [START_MS]
    assert (timed + untimed).times_ms is None
    assert timed.to_lines().endswith(b'"time":"2026-11-21T10:00:00Z"}\n')


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ([START_MS], "one time for each label"),
        (["soon", "2026-11-21T10:00:00Z"], "time at position 0: expected an RFC 3339 time"),
        ([datetime(2026, 1, 1)] * 2, "time at position 0: expected a datetime with a zone"),  # noqa: DTZ001 (it is refused)
        ([1_795_255_200] * 2, "seconds"),
    ],
)
def test_impossible_times_are_refused(times: Any, message: str):
    with pytest.raises(ValueError, match=message):
        ldp.privatize(MODES, ["bus", "bus"], times=times)


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
