"""`ldpstream plan`: its document, its table, and the channel that it writes."""

import io
import json
import re
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from rich.console import Console

from ldpstream.agents.cli.plans import planner
from ldpstream.agents.cli.plans.model import PlanDocument
from ldpstream.agents.cli.plans.tables import show_plan
from ldpstream.agents.config import load_config
from ldpstream.estimators.planning.predictions import (
    predicted_linear_variances,
    predicted_set_variances,
)
from ldpstream.estimators.planning.progress import Progress
from tests.pages import Place
from tests.stream.cli import configured, invoke
from tests.stream.plans import COLLECTIONS, NAMES, plan

VALIDATOR = Draft202012Validator(PlanDocument.model_json_schema())


@pytest.mark.grid
@pytest.mark.parametrize("name", NAMES)
def test_the_document_is_as_described_and_best_first(tmp_path: Path, name: str):
    # The search for the best channel of 24 values takes seconds: smaller collections have one.
    document = plan(tmp_path, name, *(("--search", "0") if name == "places" else ()))
    assert [error.message for error in VALIDATOR.iter_errors(document)] == []
    spec = load_config(configured(tmp_path, COLLECTIONS)).collections[name].spec
    assert document["collection"] == name
    assert document["fingerprint"] == spec.fingerprint.hex()
    assert document["policy"] == spec.mechanism.policy.describe()
    mechanisms = document["mechanisms"]
    assert [m["mechanism"] for m in mechanisms if m["configured"]] == [spec.mechanism.id]
    errors = [m["error"] for m in mechanisms]
    np.testing.assert_allclose(errors, sorted(errors), rtol=1e-8)
    assert mechanisms[0]["ratio"] == 1.0
    assert document["verdict"].startswith(mechanisms[0]["mechanism"])
    token_bytes = 8 if name == "whole" else 0
    for one in mechanisms:
        assert one["cost"]["report_bits"] <= 8 * one["cost"]["report_bytes"]
        assert one["cost"]["message_bytes"] == 24 + one["cost"]["report_bytes"] + token_bytes
        assert one["cost"]["state_bytes"] == 8 * one["cost"]["statistic"]


def test_errors_are_the_estimators_own_for_this_number_of_respondents(tmp_path: Path):
    document = plan(tmp_path, "ages", "--prior", "zipf")
    mechanism = load_config(configured(tmp_path, COLLECTIONS)).collections["ages"].spec.mechanism
    (own,) = [m for m in document["mechanisms"] if m["configured"]]
    shares = np.arange(1.0, 17.0) ** -1.1
    shares /= shares.sum()
    for estimand in ("respondents", "population"):
        keys: Any = {"shares": shares, "estimand": estimand}
        (young,) = predicted_set_variances(mechanism, [np.arange(5)], **keys) / 10_000
        assert own["ranges"][0]["name"] == "young"
        assert own["ranges"][0][estimand] == pytest.approx(np.sqrt(young), rel=1e-9)
        median = int(np.searchsorted(np.cumsum(shares), 0.5))
        prefix = (np.arange(16) <= median).astype(float)[None]
        (below,) = predicted_linear_variances(mechanism, prefix, **keys) / 10_000
        assert own["quantiles"][0]["value"] == [4.0 * median, 4.0 * (median + 1)]
        assert own["quantiles"][0][estimand] == pytest.approx(np.sqrt(below), rel=1e-9)
        assert own["quantiles"][0]["bound"] > own["quantiles"][0][estimand]
        (first, second) = (
            predicted_set_variances(mechanism, [np.array([0]), np.array([1])], **keys) / 10_000
        )
        assert [value[estimand] for value in own["top"]] == pytest.approx(np.sqrt([first, second]))
    mean = (own["ranges"][0]["respondents"] ** 2 + own["quantiles"][0]["respondents"] ** 2) / 2
    assert own["error"] == pytest.approx(np.sqrt(mean))


def test_widths_are_those_of_normal_bounds_with_the_respondents_they_need(tmp_path: Path):
    document = plan(tmp_path, "places", "--width", "0.02", "--search", "0")
    assert document["wanted_width"] == 0.02
    for one in document["mechanisms"]:
        assert one["width"] == pytest.approx(2 * 1.959964 * one["error"], rel=1e-6)
        wanted = 10_000 * (one["width"] / 0.02) ** 2
        assert one["respondents_for_width"] == pytest.approx(wanted, abs=1.0)


@pytest.mark.slow
def test_the_winner_of_binary_is_the_one_channel_that_spends_both_budgets(tmp_path: Path):
    document = plan(tmp_path, "answers")
    assert document["mechanisms"][0]["mechanism"] == "binary"
    assert document["mechanisms"][0]["epsilon"] == [1.0, "inf"]
    assert document["mechanisms"][0]["of_optimum"] == pytest.approx(1.0, rel=1e-6)


@pytest.mark.slow
def test_a_plan_of_high_low_leads_to_groups(tmp_path: Path):
    errors = {one["mechanism"]: one["error"] for one in plan(tmp_path, "modes")["mechanisms"]}
    assert errors["groups"] < 0.9 * errors["high-low"]


def test_exact_answers_have_no_error(tmp_path: Path):
    document = plan(tmp_path, "whole")
    exact = [one for one in document["mechanisms"] if one["error"] == 0.0]
    assert "block-hadamard" in {one["mechanism"] for one in exact}
    assert {one["respondents_for_1_percent"] for one in exact} == {1}
    # Ties are broken by the errors of values, not by the length of reports.
    others = [one["values"]["mean"] for one in exact]
    assert len(others) > 1
    assert others == pytest.approx(sorted(others))
    for one in document["mechanisms"]:
        assert one["ratio"] == (1.0 if one in exact else None)


@pytest.mark.slow
def test_a_written_channel_is_as_good_as_planned(tmp_path: Path):
    counts = tmp_path / "counts.txt"
    counts.write_text("5\n3\n2\n")
    file = tmp_path / "best.channel"
    command = ["plan", "-c", configured(tmp_path, COLLECTIONS), "modes", "--respondents", "10000"]
    keys = ["--json", "--prior", str(counts)]
    result = invoke(*command, *keys, "--optimise", str(file))
    assert result.exit_code == 0, result.stderr
    assert result.stderr.startswith(f"{file}: written, ")
    document = json.loads(result.stdout)
    optimum = document["optimum"]
    assert 0 < optimum["bound"] <= optimum["error"] <= document["mechanisms"][0]["error"] * 1.000001
    nearest = document["mechanisms"][0]
    assert nearest["of_optimum"] == pytest.approx(nearest["error"] / optimum["error"])
    own = COLLECTIONS.split("[collection.modes]")[1].split("[collection")[0]
    domain = next(line for line in own.splitlines() if line.startswith("domain"))
    configured(
        tmp_path,
        f'[collection.modes]\nmechanism = "optimal"\nchannel = "best.channel"\n{domain}\n',
    )
    again = json.loads(invoke(*command, *keys, "--search", "0").stdout)
    assert again["optimum"] is None
    (written,) = [one for one in again["mechanisms"] if one["configured"]]
    assert written["mechanism"] == "optimal"
    assert written["error"] == pytest.approx(optimum["error"], rel=1e-6)
    assert invoke("certify", "-c", str(tmp_path / "ldpstream.toml"), "modes").exit_code == 0


@pytest.mark.slow
def test_without_a_prior_above_zero_there_is_a_plan_but_no_optimum(tmp_path: Path):
    counts = tmp_path / "counts.txt"
    counts.write_text("5\n0\n2\n")
    assert plan(tmp_path, "modes", "--prior", str(counts))["optimum"] is None
    assert plan(tmp_path, "clicks")["optimum"] is None
    assert plan(tmp_path, "modes")["optimum"] is not None


@pytest.mark.slow
def test_mechanisms_that_break_the_policy_are_named_with_the_pair(tmp_path: Path):
    document = plan(tmp_path, "places", "--search", "0")
    (l1,) = [one for one in document["refused"] if one["mechanism"] == "l1-geometric"]
    assert (l1["value"], l1["other"], l1["allowed"]) == ([0, 0], [0, 2], 1.0)
    assert l1["taken"] == 2.0
    needs = {one["mechanism"]: one["needs"] for one in document["unsuited"]}
    assert needs["binary"] == "2 values, got 24"
    command = ["plan", "-c", configured(tmp_path, COLLECTIONS), "places", "--respondents", "9"]
    shown = invoke(*command, "--search", "0")
    assert "from [0, 0] to [0, 2] the policy allows 1, but it spends 2" in shown.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_table_names_every_mechanism_and_the_verdict(tmp_path: Path, name: str):
    # A search that a time limit ends finds another channel each time, so there is none here.
    document = plan(tmp_path, name, "--search", "0")
    file = configured(tmp_path, COLLECTIONS)
    result = invoke("plan", "-c", file, name, "--respondents", "10000", "--search", "0")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith(f"{name}: {document['verdict']}\n")
    for one in document["mechanisms"]:
        assert one["mechanism"] in result.stdout
    for one in document["unsuited"]:
        assert f"no: {one['mechanism']}: needs {one['needs']}" in result.stdout


def test_a_distance_from_a_sample_of_the_values_is_marked(tmp_path: Path):
    document = plan(tmp_path, "ages", "--search", "0")
    assert document["mechanisms"][0]["total_variation"] < 1.0

    def shown() -> str:
        console = Console(record=True, width=200, file=io.StringIO())
        show_plan(PlanDocument.model_validate(document), console)
        return console.export_text()

    distance = f"{document['mechanisms'][0]['total_variation']:.3g}"
    assert f" {distance} " in shown()
    document["mechanisms"][0]["values"]["predicted"] -= 1
    assert f" ~{distance} " in shown()


@pytest.mark.parametrize(
    ("prior", "lines"),
    [
        ("uniform", ["any of 20 values, share 0.0417, at most"]),
        ("zipf", [f"value {one}, share" for one in ("[0, 0]", "[1, 0]", "[0, 1]")]),
    ],
)
def test_equally_frequent_values_are_not_listed(prior: str, lines: list[str], tmp_path: Path):
    document = plan(tmp_path, "places", "--search", "0", "--prior", prior)
    console = Console(record=True, width=300, file=io.StringIO())
    show_plan(PlanDocument.model_validate(document), console)
    table = console.export_text()
    rows = [row for row in table.splitlines() if ", share " in row]
    assert [any(line in row for row in rows) for line in lines] == [True] * len(lines)
    assert len(rows) == (1 if prior == "uniform" else 5)
    if prior == "uniform":
        worst = max(one["population"] for one in document["mechanisms"][0]["top"])
        assert f" {worst:.3g} " in rows[0]


def test_a_terminal_shows_what_it_waits_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    command = ["plan", "-c", configured(tmp_path), "modes", "--respondents", "10", "--search", "0"]
    quiet = invoke(*command, "--json")
    assert quiet.stderr == ""
    # With these, rich assumes a terminal.
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    shown = invoke(*command, "--json")
    assert "searching for the best channel: modes" in shown.stderr
    assert json.loads(shown.stdout)["verdict"] == json.loads(quiet.stdout)["verdict"]


def test_a_plan_ends_in_time_and_names_what_it_did_not_reach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    whole = plan(tmp_path, "ages", "--search", "0")
    assert (whole["unreached"], whole["limit_seconds"]) == ([], None)
    ticks = count()
    clock = partial(Progress, clock=lambda: float(next(ticks)))
    monkeypatch.setattr(planner, "Progress", clock)
    document = plan(tmp_path, "ages", "--search", "0", "--limit", "500")
    reached = [(one["mechanism"], one["variant"]) for one in document["mechanisms"]]
    assert ("l1-geometric", "") in reached
    left = [(one["mechanism"], one["variant"]) for one in document["unreached"]]
    assert ("tree", "one block") in left
    assert document["limit_seconds"] == 500.0
    every = [(one["mechanism"], one["variant"]) for one in whole["mechanisms"]]
    assert {*reached} < {*every}
    names = "; ".join(", ".join(filter(None, one)) for one in left)
    assert f"Not compared within 500 s, so maybe better: {names}." in document["verdict"]


def test_a_file_of_counts_is_a_prior(tmp_path: Path):
    file = tmp_path / "counts.txt"
    file.write_text("1\n0\n3\n")
    document = plan(tmp_path, "modes", "--prior", str(file))
    assert document["prior"] == f"the counts of {file}"
    top = document["mechanisms"][0]["top"]
    assert [(one["value"], one["share"]) for one in top] == [
        ("walk, slowly", 0.75),
        ("bus", 0.25),
        ("train", 0.0),
    ]


@pytest.mark.slow
def test_the_commands_of_the_page_run_as_written(tmp_path: Path):
    page = (Path(__file__).resolve().parents[3] / "docs" / "how-to" / "plan.md").read_text()
    (code,) = re.findall(r"^```sh\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)
    # Only the command that writes the best channel searches for it.
    *quick, last = re.findall(r"^ldpstream plan .*$", code, flags=re.MULTILINE)
    assert len(quick) == 2
    assert "--optimise" in last
    for command in quick:
        code = code.replace(f"{command}\n", f"{command} --search 0\n")
    said = Place.made(tmp_path, {}).shell(f"exec 2>&1\n{code}")
    assert "best.channel: written, " in said
    assert said.count(" is best for ") == 2
    assert json.loads((tmp_path / "plan.json").read_text())["collection"] == "ages"
