"""The `policy` key of a collection: each form, and each way to get it wrong, by its key path."""

import math
from fractions import Fraction
from pathlib import Path

import pytest

from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.domains.parse import parse_domain
from ldpstream.mechanisms.interface.settings import Settings
from ldpstream.mechanisms.policies.graph import GraphPolicy
from ldpstream.mechanisms.policies.matrix import MatrixPolicy
from ldpstream.mechanisms.policies.metric import MetricPolicy
from ldpstream.mechanisms.policies.policy import BlockPolicy, HighLowPolicy, Policy

MODES = {"values": ["bus", "train", "walk"]}
GRID = {"grid": [2, 3]}


def read(
    folder: Path, given: object, *, domain: object = MODES, epsilon: object = None, file: str = ""
) -> Policy:
    (folder / "f.csv").write_text(file, "utf-8")
    parsed, _ = parse_domain(domain, path="domain", base=folder)
    return Settings("c", parsed, {"policy": given, "epsilon": epsilon}, folder, None).read_policy()


def test_a_matrix_from_a_file_or_inline(tmp_path: Path):
    text = "0, 0.5,inf\n\n1,0,2\ninf,inf,0.0\n"
    rows = [[0, 0.5, math.inf], [1, 0, 2], [math.inf, math.inf, 0]]
    assert read(tmp_path, {"file": "f.csv"}, file=text) == MatrixPolicy.of(rows)
    assert read(tmp_path, {"matrix": rows}) == MatrixPolicy.of(rows)


def test_a_graph_from_a_file_of_labels(tmp_path: Path):
    graph = {"metric": "graph", "file": "f.csv"}
    policy = read(tmp_path, graph, file="bus,train,0.5\nwalk,train,0.25\n")
    assert policy == GraphPolicy(3, ((0, 1, Fraction(1, 2)), (2, 1, Fraction(1, 4))))
    assert policy.entry(0, 2) == Fraction(3, 4)
    directed = read(tmp_path, {**graph, "directed": True}, file="bus,train,0.5\n")
    assert directed.entry(1, 0) is None
    same = read(tmp_path, graph, file="bus,train\nwalk,train\n", epsilon=0.1)
    assert same.entry(0, 2) == Fraction(1, 5)


def test_a_label_of_a_grid_takes_two_columns(tmp_path: Path):
    graph = {"metric": "graph", "file": "f.csv"}
    policy = read(tmp_path, graph, domain=GRID, file="0,0,1,2,0.5\n1,2,1,1,3\n")
    assert policy.entry(0, 4) == Fraction(7, 2)


def test_metrics_blocks_and_sensitive_values_take_epsilon(tmp_path: Path):
    def of(given: object, domain: object = GRID) -> Policy:
        return read(tmp_path, given, domain=domain, epsilon=0.5)

    assert of({"metric": "l1"}) == MetricPolicy(0.5, (2, 3))
    assert of({"metric": "l2"}) == MetricPolicy(0.5, (2, 3), p=2)
    assert of({"metric": "lp", "p": 2.0}) == MetricPolicy(0.5, (2, 3), p=2)
    assert of({"metric": "lp", "p": math.inf}) == MetricPolicy(0.5, (2, 3), p=math.inf)
    assert of({"metric": "l1", "scale": [1, 2]}) == MetricPolicy(0.5, (2, 3), scale=(1.0, 2.0))
    interval = of({"metric": "l2"}, {"interval": [0.0, 10.0], "bins": 5})
    assert isinstance(interval, MetricPolicy)
    assert interval.widths == (2.0,)
    rounded = {"interval": [0.0, 10.0], "bins": 5, "rounding": "random"}
    near = of({"metric": "l1"}, rounded)
    assert isinstance(near, MetricPolicy)
    assert near.rounded
    assert near.epsilon == pytest.approx(math.log(1.5), rel=1e-15)
    for given in ({"metric": "l2"}, {"metric": "l1", "scale": [2.0]}):
        with pytest.raises(SpecError, match=r"^c\.policy\.p: expected 1, without a scale"):
            of(given, rounded)
    with pytest.raises(SpecError, match=r"^c\.domain\.rounding: expected a mechanism with a bud"):
        of({"blocks": 1}, rounded)
    blocks = of({"blocks": [1, 2]})
    assert isinstance(blocks, BlockPolicy)
    assert blocks.blocks.of_value.tolist() == [0, 0, 1, 2, 2, 3]
    assert of({"sensitive": ["walk"]}, MODES) == HighLowPolicy(0.5, 3, frozenset({2}))


def test_a_mechanism_reads_it_from_its_settings(tmp_path: Path):
    domain, _ = parse_domain(GRID, path="domain", base=tmp_path)
    keys: dict[str, object] = {"epsilon": 0.5, "policy": {"metric": "l1"}}
    settings = Settings("c", domain, keys, tmp_path, None)
    assert settings.read_policy() == MetricPolicy(0.5, (2, 3))
    with pytest.raises(
        SpecError, match=r"^c\.policy: expected a table with one of metric, .*, got none$"
    ):
        Settings("c", domain, {"epsilon": 0.5}, tmp_path, None).read_policy()


FILE = {"file": "f.csv"}
GRAPH = {"metric": "graph", "file": "f.csv"}
ROWS = "expected 3 rows, one for each value"

BAD_FILES = [
    (FILE, "0,1,1\n1,0,1\n", rf"^c\.policy\.file: {ROWS}, got 2$"),
    (FILE, "", rf"^c\.policy\.file: {ROWS}, got 0$"),
    (FILE, "0,1,1\n1,0,1\n1,1,0\n1,1,1\n", rf"^c\.policy\.file line 4: {ROWS}, got one more$"),
    (FILE, "0,1,1\n1,0\n1,1,0\n", r"^c\.policy\.file line 2: expected 3 budgets, .*, got 2$"),
    (FILE, "0,1,-1\n", r"^c\.policy\.file line 1 column 3: expected a budget of at least 0 or inf"),
    (FILE, "0,1,1\n0,1,0\n", r"^c\.policy\.file line 2 column 2: expected 0 on the diagonal, got"),
    (FILE, '0,1,"1\n', r"^c\.policy\.file: expected CSV in UTF-8, got 'f\.csv'"),
    ({"file": "absent.csv"}, "", r"^c\.policy\.file: expected a readable file, got 'absent.csv'"),
    ({"file": 3}, "", r"^c\.policy\.file: expected the path of a CSV file, got 3$"),
    (GRAPH, "", r"^c\.policy\.file: expected at least one edge, .*, got none$"),
    (GRAPH, "bus,train,1\nbus,walk\n", r"^c\.policy\.file line 2: expected two labels, and a"),
    (GRAPH, "bus,taxi,1\n", r"^c\.policy\.file line 1 label 2: expected one of the 3 labels"),
    (GRAPH, "bus,bus,1\n", r"^c\.policy\.file line 1: expected an edge between two different "),
    (
        GRAPH,
        "bus,train,-1\n",
        r"^c\.policy\.file line 1 column 3: expected a budget of at least 0,",
    ),
    (GRAPH, "bus,train,inf\n", r"^c\.policy\.file line 1 column 3: expected a budget of at least"),
    (GRAPH, "bus,train\n", r"^c\.policy\.file line 1: expected a budget after the labels, or an "),
    ({"metric": "graph"}, "", r"^c\.policy\.file: expected the path of a CSV file, got none$"),
]


@pytest.mark.parametrize(("given", "file", "message"), BAD_FILES)
def test_a_bad_file_is_refused_by_line_and_column(
    tmp_path: Path, given: object, file: str, message: str
):
    with pytest.raises(SpecError, match=message):
        read(tmp_path, given, file=file)


BAD = [
    (None, 1.0, MODES, r"^c\.policy: expected a table with one of metric, file, .*, got none$"),
    ("l1", 1.0, GRID, r"^c\.policy: expected a table with one of .*, got 'l1'$"),
    ({"p": 2}, 1.0, GRID, r"^c\.policy: expected a table with one of .*, got a table$"),
    ({"metric": "l3"}, 1.0, GRID, r"^c\.policy\.metric: expected one of l1, l2, lp, graph, got"),
    ({"metric": ["l1"]}, 1.0, GRID, r"^c\.policy\.metric: expected one of .*, got a list of 1$"),
    ({"metric": "l2", "p": 2}, 1.0, GRID, r"^c\.policy\.p: expected one of the keys metric, scale"),
    (
        {"metric": "lp"},
        1.0,
        GRID,
        r"^c\.policy\.p: expected a whole number in 1\.\.64, or inf, got none",
    ),
    ({"metric": "lp", "p": 0.5}, 1.0, GRID, r"^c\.policy\.p: expected a whole number in 1\.\.64"),
    ({"metric": "l1"}, 1.0, MODES, r"^c\.domain: expected an ordered domain with l1 "),
    (
        {"metric": "l1"},
        None,
        GRID,
        r"^c\.epsilon: expected a number above 0 with this policy, got none$",
    ),
    ({"metric": "l1"}, -1.0, GRID, r"^c\.epsilon: expected a finite number above 0, got -1\.0$"),
    ({"metric": "l1", "scale": 2}, 1.0, GRID, r"^c\.policy\.scale: expected a list of numbers"),
    ({"metric": "l1", "scale": [1]}, 1.0, GRID, r"^c\.policy\.scale: expected 2 numbers, one a"),
    ({"metric": "l1", "scale": [1, 0]}, 1.0, GRID, r"^c\.policy\.scale\[1\]: expected a finite"),
    ({**GRAPH, "directed": 1}, 1.0, MODES, r"^c\.policy\.directed: expected true or false, got 1$"),
    ({"blocks": 9}, 1.0, MODES, r"^c\.policy\.blocks: expected a number of values in 1\.\.3"),
    (
        {"blocks": 2},
        None,
        MODES,
        r"^c\.epsilon: expected a number above 0 with this policy, got none$",
    ),
    ({"sensitive": []}, 1.0, MODES, r"^c\.policy\.sensitive: expected a list of at least one"),
    ({"sensitive": ["taxi"]}, 1.0, MODES, r"^c\.policy\.sensitive\[0\]: expected one of the 3"),
    ({"file": "f.csv", "blocks": 2}, None, MODES, r"^c\.policy\.blocks: expected one of the keys"),
    ({"matrix": [[0, 1], [1, 0]]}, None, MODES, r"^c\.policy\.matrix: expected 3 rows, one for "),
    (
        {"matrix": [[0, 1, 1], [1, 0, 1], [1, -2, 0]]},
        None,
        MODES,
        r"^c\.policy\.matrix\[2\]\[1\]: ",
    ),
    ({"matrix": [[0]]}, 1.0, MODES, r"^c\.epsilon: expected no epsilon with a policy that holds"),
    ({"file": "f.csv"}, 1.0, MODES, r"^c\.epsilon: expected no epsilon with a policy that holds"),
    ({"file": "f.csv"}, None, {"size": 2000}, r"^c\.policy\.file: expected a domain of at most 1"),
]


@pytest.mark.parametrize(("given", "epsilon", "domain", "message"), BAD)
def test_a_bad_policy_is_refused_by_key(
    tmp_path: Path, given: object, epsilon: object, domain: object, message: str
):
    with pytest.raises(SpecError, match=message):
        read(tmp_path, given, domain=domain, epsilon=epsilon)


def test_budgets_in_the_file_leave_no_place_for_epsilon(tmp_path: Path):
    with pytest.raises(SpecError, match=r"^c\.policy\.file: expected edges without budgets, as "):
        read(tmp_path, GRAPH, epsilon=1.0, file="bus,train,1\n")
