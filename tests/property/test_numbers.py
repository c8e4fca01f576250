"""Numbers are read in one grammar at every edge, and not in Python's own."""

import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpstream.agents.config.query.queries import parse_linear, parse_range
from ldpstream.agents.config.query.settings import TOP, UNIT
from ldpstream.agents.config.serving import is_port
from ldpstream.mechanisms.base.checks import read_budget
from ldpstream.mechanisms.base.errors import QueryError
from ldpstream.mechanisms.base.numbers import (
    parse_real,
    parse_reals,
    parse_whole,
    read_decimal,
    read_number,
    read_whole,
)
from ldpstream.mechanisms.base.times import parse_duration, parse_time
from ldpstream.mechanisms.domains.parse import Interval, Labels, Size
from ldpstream.mechanisms.ledger.spent import read_budget as read_ledger_budget
from tests.stream.cli import configured, invoke

FOREIGN = [
    "1_0",
    "１０",
    "١٠",
    "0x10",
    "1e1_0",
    "nan",
    "inf",
    "-inf",
    "1e999",
    "1e",
    ".",
    "",
    "1 0",
]
"""Texts that Python, numpy or JavaScript read as numbers, and people do not; and no numbers."""
SIZE, LINE = Size(11), Interval(((0.0, 100.0),), (10,))


@pytest.mark.parametrize("text", FOREIGN)
@pytest.mark.parametrize("read", [read_number, read_whole])
def test_nothing_but_decimals_is_a_number(read: Callable[[str], float], text: str):
    with pytest.raises(ValueError, match="number"):
        read(text)


@pytest.mark.parametrize("text", FOREIGN)
def test_cells_are_numbers_in_no_domain(text: str):
    assert math.isnan(parse_real(text))
    assert parse_whole(text) == -1
    for domain in (SIZE, LINE):
        with pytest.raises(ValueError, match="expected a"):
            domain.parse_columns([[text]])


@pytest.mark.parametrize("text", FOREIGN)
@pytest.mark.parametrize(
    "read",
    [
        UNIT.read,
        TOP.read,
        parse_duration,
        parse_time,
        lambda text: parse_duration(f"{text}s"),
        lambda text: read_budget(text, "policy", infinite=False),
        lambda text: parse_range(f"{text}..10", SIZE),
        lambda text: parse_linear(f"{text},1", Labels(("bus", "car")), 1),
        read_ledger_budget,
        lambda text: read_ledger_budget(f"1/{text}"),
    ],
)
def test_edges_refuse_what_is_no_number(read: Callable[[str], Any], text: str):
    with pytest.raises(ValueError):  # noqa: PT011 (each has a message of its own)
        read(text)


@pytest.mark.parametrize("text", [*FOREIGN, "65536", "99999", "1" * 5_000, "+80", " 80"])
def test_ports_are_digits(text: str):
    assert not is_port(text)
    assert is_port("6066")


@pytest.mark.parametrize(
    ("text", "number"),
    [("12", 12.0), ("+5", 5.0), ("-0.5", -0.5), (".5", 0.5), ("5.", 5.0), ("1E3", 1000.0)],
)
def test_what_people_write_is_read(text: str, number: float):
    assert read_number(text) == parse_real(f" {text}\t") == number
    assert read_decimal(text) == Fraction(number)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_double_comes_back(number: float):
    assert read_number(repr(number)) == number


@given(st.text(alphabet="0123456789.eE+-_ xinfa１٣", max_size=8))
def test_what_is_read_is_what_python_reads(text: str):
    try:
        number = read_decimal(text)
    except ValueError:
        return
    assert float(number) == float(text)


def test_only_the_word_inf_is_an_infinite_budget():
    assert read_budget(" inf", "policy") is None
    for text in ("Infinity", "INF", "+inf", "infinity"):
        with pytest.raises(ValueError, match="policy: expected a budget of at least 0 or inf"):
            read_budget(text, "policy")


PLAN = ("plan", "ages", "--json", "--respondents")


@pytest.mark.parametrize(
    "command",
    [
        ("privatize", "ages"),
        (*PLAN, "{}"),
        (*PLAN, "9", "--search", "{}"),
        (*PLAN, "9", "--limit", "{}"),
        (*PLAN, "9", "--width", "{}"),
        (*PLAN, "9", "--search", "0", "--prior", "counts"),
        ("certify", "ages", "--published", "{}", "--delta", "0.1"),
        ("certify", "ages", "--published", "9", "--delta", "{}"),
        ("certify", "ages", "--windows", "{}"),
        ("query", "http://127.0.0.1:1", "ages", "--last", "{}"),
        ("simulate", "ages", "--seconds", "{}"),
        ("simulate", "ages", "--seed", "{}"),
        ("simulate", "ages", "--rate", "{}"),
        ("send", "ages", "--batch", "{}"),
        ("demo", "--seconds", "{}"),
        ("demo", "--port", "{}"),
        ("devbroker", "--port", "{}"),
        ("close", "ages", "--yes", "--until", "{}"),
        ("worker", "--shard", "{}/2"),
        ("estimate", "ages", "--confidence", "{}"),
        ("estimate", "ages", "--quantile", "{}"),
        ("estimate", "ages", "--range", "{}..50"),
    ],
)
@pytest.mark.parametrize("text", ["1_0", "nan"])
def test_commands_refuse_what_is_no_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], text: str
):
    configured(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "counts").write_text(f"{text}\n" * 10)
    result = invoke(*(part.format(text) for part in command), stdin=f"{text}\n")
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    assert result.stderr.count("\n") == 1, result.stderr


ODD = [
    "1",
    "1_0",
    " 2 ",
    "\t3",
    "4\n",
    "\xa05",
    "nan",
    "inf",
    "1e999",
    "",
    "x",
    "\u0663",
    "1\x1f",
    "-0",
]


def test_cells_together_are_the_numbers_of_each():
    for one in ODD:
        for other in ODD:
            each = [repr(parse_real(one)), repr(parse_real(other))]
            assert [repr(number) for number in parse_reals([one, other])] == each
    assert parse_reals([]) == []


MODES = Labels(("bus", "car", "walk"))


@pytest.mark.parametrize("text", ["0,-1,1", "walk=1,car=-1", " walk = 1, car=-1", "car=-1,walk=1"])
def test_weights_are_written_in_order_or_by_label(text: str):
    for name in ("", "lead:"):
        query = parse_linear(f"{name}{text}", MODES, 2)
        assert query.name == (name.removesuffix(":") or "linear-2")
        assert query.weights.tolist() == [0.0, -1.0, 1.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("walk=1,2", r"W,W,\.\.\. with a number for each value, or .*LABEL=W"),
        ("walk=one", r"LABEL=W"),
        ("walk=1,walk=2", "each label once"),
        ("wlak=1", "labels of the domain, got 'wlak'"),
        ("1,2", "3 weights, one for each value, got 2"),
    ],
)
def test_weights_that_cannot_be_read_are_refused(text: str, message: str):
    with pytest.raises(QueryError, match=message):
        parse_linear(text, MODES, 1)
