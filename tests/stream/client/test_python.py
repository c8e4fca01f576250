"""`import ldpstream as ldp`: values in, estimates, plans and proofs out, in a few lines each."""

import ast
import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiohttp.test_utils import TestServer

import ldpstream as ldp
from ldpstream.agents.client import UnreachableError
from ldpstream.agents.web import build_http
from ldpstream.mechanisms import ValueOutsideDomainError
from tests.stream.cli import invoke
from tests.stream.modes import AGES, GRID, MODES, VALUES, draw
from tests.stream.serving import CITY, MINUTE_MS, START_MS, serve_collections, visits

ROOT = Path(__file__).parents[3]


@pytest.fixture
def drawing(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("MPLBACKEND", "Agg")
    plt = pytest.importorskip("matplotlib.pyplot")
    yield plt
    plt.close("all")


def test_report_sets_add_up_and_are_kept_in_files(tmp_path: Path):
    first, second = draw(MODES, ["bus"] * 30), draw(MODES, ["car"] * 12)
    both = first + second
    assert (len(both), repr(both)) == (42, "<42 reports of modes>")
    assert ldp.estimate(both).n == 42
    empty = ldp.privatize(MODES, [])
    assert len(empty) == 0
    assert (empty + first).to_lines() == first.to_lines()
    both.save(tmp_path / "reports.jsonl")
    again = ldp.read_reports(MODES, tmp_path / "reports.jsonl")
    assert ldp.estimate(again) == ldp.estimate(both)
    with pytest.raises(ValueError, match="expected reports with fingerprint"):
        first + draw(GRID, [(0, 1)])
    with pytest.raises(ValueError, match="line 1: expected a report of collection grid"):
        ldp.read_reports(GRID, tmp_path / "reports.jsonl")


def test_programs_may_make_numpy_raise():
    labels = np.linspace(0, 100, 50, dtype=np.float32)
    ages = ldp.define_collection(
        "ages",
        mechanism="block-hadamard",
        epsilon=3.0,
        domain={"interval": [0.0, 100.0], "bins": 9},
    )
    reports = draw(MODES, ["bus"] * 40)
    expected = ldp.estimate(reports)
    with np.errstate(all="raise"):
        assert len(ldp.privatize(ages, labels)) == 50
        assert ldp.estimate(reports) == expected


def test_a_file_of_reports_is_that_of_the_command_line(tmp_path: Path):
    file = tmp_path / "ldpstream.toml"
    domain = json.dumps(VALUES)
    file.write_text(
        '[collection.modes]\nmechanism = "block-hadamard"\nepsilon = 8.0\nminimum = 1\n'
        f"domain = {{ values = {domain} }}\n"
    )
    modes = ldp.load_collection(file, "modes")
    assert modes.spec.fingerprint == MODES.spec.fingerprint
    draw(modes, ["bus"] * 50, times=[START_MS] * 50).save(tmp_path / "reports.jsonl")
    said = invoke(
        "estimate", "--json", "-c", str(file), "modes", str(tmp_path / "reports.jsonl")
    ).stdout
    reports = ldp.read_reports(modes, tmp_path / "reports.jsonl")
    assert reports.times_ms.tolist() == [START_MS] * 50
    assert said.encode() == ldp.estimate(reports).to_json() + b"\n"
    with pytest.raises(ValueError, match=r"ldpstream.toml: collection: expected one of modes, got"):
        ldp.load_collection(file, "mods")


def test_bad_values_are_refused_skipped_or_clamped_and_counted():
    with pytest.raises(ValueOutsideDomainError) as caught:
        ldp.privatize(MODES, ["bus", "plane", "car"])
    assert caught.value.position == 1
    assert "plane" not in str(caught.value)
    some = draw(MODES, ["plane", "bus", "boat"], skip_bad=True)
    assert (len(some), some.skipped, some.clamped) == (1, 2, 0)
    moved = draw(AGES, [-5.0, 50.0, 1e9, float("nan")], clamp=True, skip_bad=True)
    assert (len(moved), moved.skipped, moved.clamped) == (3, 1, 2)
    assert moved.reports.tolist() == draw(AGES, [0.0, 50.0, 100.0]).reports.tolist()
    with pytest.raises(ValueError, match="clamp: expected a collection with only numbers"):
        ldp.privatize(MODES, ["bus"], clamp=True)


def test_a_query_is_made_of_keywords_or_a_request():
    reports = draw(AGES, np.linspace(0.0, 99.0, 2_000))
    document = ldp.estimate(reports, top=3, ranges=("0..50",), quantiles=(0.5,), confidence=0.9)
    request = ldp.EstimateRequest(top=3, ranges=["0..50"], quantiles=[0.5], confidence=0.9)
    assert document == ldp.estimate(reports, request)
    assert len(document.distribution) == 3
    assert list(document.to_columns("quantiles")) == ["p", "value", "low", "high"]
    weights = {"name": "mean", "weights": np.arange(10.0)}
    asked = ldp.estimate(reports, linear=[weights])
    assert asked.to_columns("linear")["label"] == ["mean"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tops": 3}, r"tops: unknown key \(did you mean top\?\)"),
        ({"ranges": ["3"]}, "range: expected LO..HI"),
        ({"ranges": "0..3"}, 'ranges: expected a list, such as .*, got "0..3"'),
        ({"start": "2026-11-21T10:00:00Z"}, "start: expected none"),
    ],
)
def test_an_impossible_query_is_refused_by_its_keyword(options: dict[str, Any], message: str):
    """As the model of a body over HTTP refuses it: `test_http_refusals`."""
    with pytest.raises(ValueError, match=message):
        ldp.estimate(draw(GRID, [(0, 1)]), **options)


@pytest.mark.slow
def test_a_withheld_document_has_no_rows_and_an_empty_picture(drawing: Any):
    few = ldp.define_collection("modes", mechanism="binary", epsilon=[1.0, 1.0], domain={"size": 2})
    document = ldp.estimate(draw(few, [0, 1]))
    assert document.withheld
    assert document.to_columns()["share"] == []
    drawing.close(ldp.plot([document, document]).figure)
    drawing.close(document.plot().figure)
    with pytest.raises(ValueError, match="part: expected one of values, ranges, quantiles, linear"):
        document.to_columns("shares")


def test_plan_and_proof():
    proof = ldp.certify(MODES)
    assert proof.passed
    assert proof.loss_high <= 8.0
    plan = ldp.plan(MODES, respondents=1_000, prior=[4, 3, 2, 1], search_seconds=0)
    assert plan.prior == "the given counts"
    assert {one.mechanism for one in plan.mechanisms} >= {"block-hadamard", "randomized-response"}
    with pytest.raises(ValueError, match="prior: expected 4 counts"):
        ldp.plan(MODES, respondents=10, prior=[1, 2])
    with pytest.raises(ValueError, match="width: expected a number above 0"):
        ldp.plan(MODES, respondents=10, width=0.0)
    with pytest.raises(ValueError, match="respondents: expected a whole number above 0"):
        ldp.plan(MODES, respondents=0)


@pytest.mark.slow
def test_every_document_can_be_drawn(drawing: Any):
    document = ldp.estimate(draw(MODES, ["bus"] * 50))
    axes = document.plot()
    assert next(text.get_text() for text in axes.get_yticklabels()) == "bus"
    assert axes.get_title() == "modes, all reports: 50 reports"
    wide = ldp.define_collection(
        "w", mechanism="l1-bits", epsilon=4.0, domain={"size": 100}, minimum=1
    )
    line = ldp.estimate(draw(wide, [5] * 900), top="all", quantiles=[0.1, 0.9])
    assert len(ldp.plot(line).lines) == 1
    ldp.plot(line, "quantiles")
    course = ldp.plot([document, document])
    assert next(one.get_label() for one in course.lines) == "bus"
    (_, own) = drawing.subplots()
    assert ldp.plot(line, axes=own) is own
    for figure in map(drawing.figure, drawing.get_fignums()):
        figure.canvas.draw()
    with pytest.raises(ValueError, match="at least one document"):
        ldp.plot([])


@pytest.mark.slow
def test_a_missing_package_is_named():
    document = ldp.estimate(ldp.privatize(MODES, ["bus"])).to_json().decode()
    program = (
        "import sys; sys.modules |= dict.fromkeys(['pandas', 'matplotlib'])\n"
        f"import ldpstream as ldp; d = ldp.EstimateDocument.model_validate_json({document!r})\n"
        "for code in (d.to_frame, d.plot):\n"
        "  try: code()\n  except ImportError as error: print(error)\n"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "to_frame needs pandas, which the extra notebook brings" in out.stdout, out.stderr
    assert "plot needs matplotlib, which the extra plots brings" in out.stdout


async def test_a_worker_is_asked_without_await_even_in_a_notebook():
    pipeline = serve_collections({"city": CITY})
    for minute in range(3):
        times = [START_MS + minute * MINUTE_MS] * 50
        pipeline.collections["city"].report(0, visits(minute, 50), times_ms=times)
    async with TestServer(build_http(pipeline)) as server:
        url = str(server.make_url("/"))
        newest = await asyncio.to_thread(ldp.query, url, "city", top=2, confidence=0.9)
        assert (len(newest.distribution), newest.confidence) == (2, 0.9)
        several = await asyncio.to_thread(ldp.windows, url, "city", last=2, top=1)
        assert [one.n for one in several] == [50, 50]
        assert several[-1].window == newest.window
    # In a thread whose event loop runs, as a notebook's does.
    with pytest.raises(UnreachableError):
        ldp.query("http://127.0.0.1:1", "city")


def test_the_package_imports_lazily_what_type_checkers_see():
    text = (ROOT / "src/ldpstream/__init__.py").read_text()
    tree = ast.parse(text)
    (typed,) = (n for n in tree.body if isinstance(n, ast.If) and "not" not in ast.unparse(n.test))
    seen = {
        (alias.name, node.module)
        for node in typed.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    homes = {(name, home) for home, names in ldp._HOMES.items() for name in names.split()}
    assert homes == seen
    assert {name for name, _ in homes} | {"__version__"} == set(ldp.__all__)
    assert all(getattr(ldp, name) is not None for name in ldp.__all__)
    # What completion offers.
    assert dir(ldp) == sorted(ldp.__all__)
    with pytest.raises(AttributeError, match="module 'ldpstream' has no attribute 'privatise'"):
        _ = ldp.privatise


def test_the_best_channel_is_written_for_a_collection_that_uses_it(tmp_path: Path):
    domain = {"size": 4}
    planned = ldp.define_collection("c", mechanism="l1-geometric", epsilon=1.0, domain=domain)
    file = tmp_path / "best.channel"
    plan = ldp.plan(planned, channel_file=file, respondents=100, search_seconds=5)
    found = ldp.define_collection("c", mechanism="optimal", channel=str(file), domain=domain)
    assert ldp.certify(found).passed
    assert plan.optimum.error <= plan.mechanisms[0].error * (1 + 1e-9)
    with pytest.raises(ValueError, match="search_seconds: expected a number above 0, got 0"):
        ldp.plan(planned, channel_file=file, respondents=100, search_seconds=0)
