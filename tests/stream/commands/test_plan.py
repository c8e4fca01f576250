"""`ldpstream plan`: its document, its table, the channel that it writes, sizes and refusals."""

import io
import json
import math
import re
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from jsonschema import Draft202012Validator
from rich.console import Console

import ldpstream as ldp
from ldpstream.agents.cli.plans import planner
from ldpstream.agents.cli.plans.model import PlanDocument
from ldpstream.agents.cli.plans.size import FRAME_REPORTS, REPLICAS, SizePlan
from ldpstream.agents.cli.plans.tables import show_plan
from ldpstream.agents.config import load_config
from ldpstream.agents.engine.testing import Driver
from ldpstream.estimators.planning.progress import Progress
from tests.pages import Place
from tests.stream.cli import configured, configured_modes, invoke, refused
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


def test_widths_are_those_of_normal_bounds_with_the_respondents_they_need(tmp_path: Path):
    document = plan(tmp_path, "places", "--width", "0.02", "--search", "0")
    assert document["wanted_width"] == 0.02
    for one in document["mechanisms"]:
        assert one["width"] == pytest.approx(2 * 1.959964 * one["error"], rel=1e-6)
        wanted = 10_000 * (one["width"] / 0.02) ** 2
        assert one["respondents_for_width"] == pytest.approx(wanted, abs=1.0)


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


def shown(document: dict[str, Any]) -> str:
    console = Console(record=True, width=300, file=io.StringIO())
    show_plan(PlanDocument.model_validate(document), console)
    return console.export_text()


def test_a_distance_from_a_sample_of_the_values_is_marked(tmp_path: Path):
    document = plan(tmp_path, "ages", "--search", "0")
    assert document["mechanisms"][0]["total_variation"] < 1.0
    distance = f"{document['mechanisms'][0]['total_variation']:.3g}"
    assert f" {distance} " in shown(document)
    document["mechanisms"][0]["values"]["predicted"] -= 1
    assert f" ~{distance} " in shown(document)


@pytest.mark.parametrize(
    ("prior", "lines"),
    [
        ("uniform", ["any of 20 values, share 0.0417, at most"]),
        ("zipf", [f"value {one}, share" for one in ("[0, 0]", "[1, 0]", "[0, 1]")]),
    ],
)
def test_equally_frequent_values_are_not_listed(prior: str, lines: list[str], tmp_path: Path):
    document = plan(tmp_path, "places", "--search", "0", "--prior", prior)
    rows = [row for row in shown(document).splitlines() if ", share " in row]
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
    shares = [(one["value"], one["share"]) for one in top]
    assert shares == [("walk, slowly", 0.75), ("bus", 0.25), ("train", 0.0)]


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


@pytest.mark.parametrize(
    ("keys", "order"),
    [
        ({"domain": {"size": 8}, "epsilon": 0.5}, 8 / 0.5),
        ({"domain": {"size": 8, "blocks": 4}, "epsilon": 1.0}, math.sqrt(2 * 16)),
        (
            {"domain": {"size": 8}, "epsilon": 0.5, "sensitive": [0, 1], "mechanism": "high-low"},
            math.sqrt(4 / 0.25 + 8 / 0.5),
        ),
        ({"domain": {"size": 8}, "epsilon": 2.0}, None),
    ],
)
def test_plans_say_the_least_order_of_the_error(keys: dict[str, object], order: float | None):
    """[CA] Theorems 3 and 4: the errors measured are of that order."""
    collection = ldp.define_collection("c", **{"mechanism": "block-hadamard", **keys})
    found = ldp.plan(collection, respondents=10_000, search_seconds=0.0)
    if order is None:
        assert found.order is None
        return
    assert found.order == pytest.approx(order / 100)
    assert 0.1 < found.mechanisms[0].total_variation / found.order < 10.0


HOURS = {"night": [0, 7], "day": [4, 15], "late": [12, 23]}


@pytest.mark.parametrize(
    ("epsilon", "keys", "atoms", "variance"),
    [
        (1.0, {}, 5, 3.45479),
        (3.0, {}, 5, 0.14455),
        (1.0, {"publish": {"ranges": HOURS, "linear": {"hour": list(range(24))}}}, None, None),
        (1.0, {"publish": {"ranges": HOURS, "quantiles": [0.5]}}, None, None),
        (1.0, {"workload": "published"}, None, None),
        (1.0, {"prior": [0.0625] * 8 + [0.03125] * 16}, None, None),
        (1.0, {"publish": {"ranges": {"young": [0, 1]}}, "domain": {"size": 4}}, 2, 0.920674),
    ],
)
def test_plans_propose_reports_on_atoms(
    epsilon: float, keys: dict[str, Any], atoms: int | None, variance: float | None
):
    """Where fixed ranges are all that is published, and that has less error than the best."""
    collection = ldp.define_collection(
        "visits",
        **{
            "mechanism": "randomized-response",
            "epsilon": epsilon,
            "domain": {"size": 24},
            "publish": {"ranges": HOURS},
            **keys,
        },
    )
    found = ldp.plan(collection, respondents=10_000, search_seconds=0.0)
    assert ("nothing else is answered" in found.verdict) is (atoms is not None)
    if atoms is None:
        assert found.atoms is None
        return
    assert found.atoms.atoms == atoms
    assert found.atoms.error == pytest.approx(math.sqrt(variance / 10_000), rel=1e-5)
    assert found.atoms.error < found.mechanisms[0].error


NOT_FOR_CHANNELS = """
[collection.heights]
mechanism = "l1-geometric"
epsilon = 1.0
domain = { interval = [0.0, 10.0], bins = 5, rounding = "random" }

[collection.trips]
mechanism = "l1-geometric"
epsilon = 1.0
domain = { size = 4 }
weights = { private = 2 }

[collection.steps]
mechanism = "l1-geometric"
epsilon = 1.0
domain = { size = 4 }
weights = { public = 2 }
"""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["ages", "--search", "0"], "--search: expected some seconds with --optimise, got 0"),
        (["clicks"], "--optimise: no search: the channels of lip are the best"),
        (["modes", "--prior", "ZERO"], "--optimise: prior: expected 3 numbers above 0"),
        (["heights"], "--optimise: collection.heights.domain.rounding: expected none, because"),
        (["trips"], "--optimise: collection.trips.weights: expected none, because mechanism"),
        (["steps"], "--optimise: collection.steps.weights: expected none, because mechanism"),
        (["modes", "--search", "-1"], "Invalid value for '--search'"),
        (["modes", "--optimise", "/dev/null"], "--optimise: /dev/null: expected a file"),
        (["modes", "--optimise", "no/such/file"], "--optimise: cannot write no/such/file"),
    ],
)
def test_impossible_searches_are_refused(tmp_path: Path, options: list[str], message: str):
    """Even where there is a best channel, if no collection over these values could use it."""
    counts = tmp_path / "counts.txt"
    counts.write_text("5\n0\n2\n")
    options = [str(counts) if option == "ZERO" else option for option in options]
    file = configured(tmp_path, COLLECTIONS + NOT_FOR_CHANNELS)
    command = ["plan", "-c", file, "--respondents", "10", "--optimise", str(tmp_path / "channel")]
    assert message in refused(invoke(*command, *options))
    assert not (tmp_path / "channel").exists()


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        (b"1\n2\n", "expected 3 counts, one for each value, got 2"),
        (b"1\n2\n3\n4\n", "expected 3 counts, one for each value, got 4"),
        (b"1\n-2\n3\n", "count 2: expected a finite number >= 0"),
        (b"1\nnan\n3\n", "count 2: expected a finite number >= 0"),
        (b"1\ntwo\n3\n", "count 2: expected a finite number >= 0"),
        (b"1\n2\ninf\n", "count 3: expected a finite number >= 0"),
        (b"0\n0\n0\n", "counts: expected at least one above 0"),
        (b"\xff\n0\n0\n", "expected UTF-8, one count per line"),
    ],
)
def test_impossible_priors_are_refused(tmp_path: Path, counts: bytes, message: str):
    file = tmp_path / "counts.txt"
    file.write_bytes(counts)
    command = ["plan", "-c", configured(tmp_path, COLLECTIONS), "modes", "--respondents", "10"]
    assert refused(invoke(*command, "--prior", str(file))) == f"{file}: {message}"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("modes --respondents 0", "Invalid value for '--respondents': 0 is not in the"),
        (f"modes --respondents 1{'0' * 400}", "Invalid value for '--respondents'"),
        ("modes --respondents -5", "Invalid value for '--respondents'"),
        ("modes --respondents many", "Invalid value for '--respondents'"),
        ("modes", "Missing option '--respondents'"),
        ("none --respondents 10", "expected one of the collections ages, places, modes"),
        ("modes --respondents 10 --workload all", "Invalid value for '--workload'"),
        ("modes --respondents 10 --prior none.txt", "--prior: expected uniform, zip"),
        ("modes --respondents 10 --limit 0", "Invalid value for '--limit'"),
        ("modes --respondents 10 --limit 1e-9", "--limit: expected a longer time: no"),
    ],
)
def test_wrong_use_is_refused_by_name(tmp_path: Path, arguments: str, message: str):
    result = invoke("plan", "-c", configured(tmp_path, COLLECTIONS), *arguments.split())
    assert message in refused(result)


SIZED = """
[collection.modes]
mechanism = "{mechanism}"
epsilon = 1.0
domain = {{ size = {values} }}
partitions = {partitions}
minimum = {minimum}
window = {{ size = "10m", grace = "10m", retention = "{kept}" }}
{more}
"""


@pytest.mark.parametrize(
    ("mechanism", "values", "partitions", "minimum", "kept", "respondents"),
    [
        ("randomized-response", 8, 1, 2, "8h", 200),
        ("randomized-response", 3000, 3, 100, "1h", 3000),
        ("block-hadamard", 9000, 4, 2, "1h", 20000),
    ],
)
def test_a_state_is_at_most_as_large_as_planned_and_nearly_so(
    tmp_path: Path,
    mechanism: str,
    values: int,
    partitions: int,
    minimum: int,
    kept: str,
    respondents: int,
):
    options = {"mechanism": mechanism, "values": values, "minimum": minimum, "kept": kept}
    text = SIZED.format(more="", partitions=partitions, **options)
    collection = configured_modes(tmp_path, text)
    driver, rng = Driver(collection, start="2026-11-29T10:00:00Z"), np.random.default_rng(1)
    largest = 0
    for _ in range(collection.window.retention_ms // collection.window.size_ms + 3):
        for _ in range(partitions):
            driver.send(rng.integers(0, values, respondents // partitions))
        driver.advance("9m")
        largest = max(largest, sum(replica.size_bytes for replica in driver._replicas))
        driver.advance("1m")
    planned = SizePlan.of(collection, respondents).state_bytes
    assert 0.5 * planned < largest <= planned


@pytest.mark.parametrize("more", ["", "one_report = true"])
def test_the_source_has_the_bytes_of_its_records(tmp_path: Path, more: str):
    options = {"mechanism": "randomized-response", "values": 8, "minimum": 2, "kept": "1h"}
    collection = configured_modes(tmp_path, SIZED.format(more=more, partitions=2, **options))
    size, spec = SizePlan.of(collection, 1000), collection.spec
    reports = [1, FRAME_REPORTS] if not more else [1]
    for n, planned in zip(reports, size.source_bytes_a_day, strict=False):
        frame = spec.frame([3] * n, secret=bytes(32) if more else None)
        batch = DefaultRecordBatchBuilder(2, 0, False, -1, -1, 0, 1 << 20)
        batch.append(0, 1_795_946_400_000, None, frame, [])
        messages = size.reports_a_day / n
        assert planned / messages == pytest.approx(len(batch.build()), rel=0.02)
    assert size.reports_a_day == 144_000
    assert size.source_bytes[0] == pytest.approx(7 * REPLICAS * size.source_bytes_a_day[0])


def test_it_says_how_many_workers_and_where_partitions_are_too_few(tmp_path: Path):
    options = {"mechanism": "randomized-response", "values": 8, "minimum": 2, "kept": "1h"}
    file = configured(tmp_path, SIZED.format(more="", partitions=2, **options))
    command = "plan", "-c", file, "modes", "--size", "--respondents"
    few, many = (invoke(*command, n).stdout for n in ("3000", "60000000"))
    assert few.startswith("modes: 3,000 respondents in each window of 10m, 432,000 reports a day")
    assert "fewer than" not in few
    assert "collection.modes.partitions: fewer than workers: set 4" in many
    assert json.loads(invoke(*command, "60000000", "--json").stdout)["workers"] == 4
