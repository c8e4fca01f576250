"""The command line without a broker: init, privatize, estimate, certify, and how errors end."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ldpstream import __version__
from ldpstream.agents.cli.main import COMMANDS
from ldpstream.agents.config import load_config
from tests.stream.cli import PLACES, configured, invoke, refused, spawn


def test_the_written_configuration_can_be_used_at_once(tmp_path: Path):
    file = tmp_path / "new.toml"
    result = invoke("init", str(file))
    assert (result.exit_code, result.stdout) == (0, "")
    assert str(file) in result.stderr
    assert invoke("privatize", "-c", str(file), "checkins", stdin="0,0\n124,349\n").exit_code == 0
    message = refused(invoke("init", str(file)))
    assert message == f"{file}: expected a file that is not there yet"
    message = refused(invoke("init", str(tmp_path / "no" / "such.toml")))
    assert message.endswith("such.toml: cannot write it: No such file or directory")


def test_the_configuration_for_the_embedded_broker_differs_in_one_setting(tmp_path: Path):
    for name, options in (("kafka.toml", []), ("embedded.toml", ["--embedded"])):
        assert invoke("init", *options, str(tmp_path / name)).exit_code == 0
    kafka = load_config(tmp_path / "kafka.toml", environment={})
    embedded = load_config(tmp_path / "embedded.toml", environment={})
    assert (kafka.kafka.options, embedded.kafka.options) == ({}, {"enable_idempotence": False})
    assert embedded.collections == kafka.collections


def test_privatize_writes_one_object_a_line(tmp_path: Path):
    file = configured(tmp_path)
    spec = load_config(file).collections["places"].spec
    result = invoke("privatize", "-c", file, "places", stdin="0,0\n1,2\r\n0,1")
    assert (result.exit_code, result.stderr) == (0, "")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [list(row) for row in rows] == [["collection", "fingerprint", "report"]] * 3
    assert {row["collection"] for row in rows} == {"places"}
    assert {row["fingerprint"] for row in rows} == {spec.fingerprint.hex()}


def test_times_are_cut_on_the_device(tmp_path: Path):
    file = configured(tmp_path)
    values = "2026-11-21T10:00:00.999Z,bus\n1795255201500,train\n2026-11-21T12:00:03+02:00,bus\n"
    result = invoke("privatize", "-c", file, "--times", "modes", stdin=values)
    times = [json.loads(line)["time"] for line in result.stdout.splitlines()]
    assert times == [f"2026-11-21T10:00:0{second}Z" for second in (0, 1, 3)]


def test_labels_may_be_quoted_and_files_may_have_a_byte_order_mark(tmp_path: Path):
    file = configured(tmp_path)
    values = tmp_path / "values.csv"
    values.write_text('\ufeff"walk, slowly"\nbus\n', encoding="utf-8")
    result = invoke("privatize", "-c", file, "modes", str(values))
    assert (result.exit_code, len(result.stdout.splitlines())) == (0, 2)


def test_estimates_recover_the_truth_within_their_bounds(tmp_path: Path):
    """Bernstein bounds hold all together at every n: this fails with probability below 1e-7."""
    file = configured(tmp_path)
    rng = np.random.default_rng(7)
    cells = rng.choice(6, 20_000, p=[0.4, 0.05, 0.2, 0.1, 0.05, 0.2])
    truth = np.bincount(cells, minlength=6) / 20_000
    lines = "".join(f"{cell // 3},{cell % 3}\n" for cell in cells.tolist())
    reports = invoke("privatize", "-c", file, "places", stdin=lines)
    asked = ["--method", "bernstein", "--simultaneous", "--confidence", "0.9999999"]
    asked += ["--top", "all", "--range", "0..0,0..2", "--range", "0..1,0..0"]
    result = invoke("estimate", "-c", file, *asked, "places", stdin=reports.stdout)
    assert (result.exit_code, result.stderr) == (0, "")
    document = json.loads(result.stdout)
    assert (document["n"], document["window"], document["final"]) == (20_000, None, True)
    assert (document["late"], document["rejected"]) == (0, 0)
    for entry, share in zip(document["distribution"], truth, strict=True):
        assert entry["low"] <= share <= entry["high"]
        assert entry["high"] - entry["low"] < 0.1
    ranges = {entry["name"]: entry for entry in document["ranges"]}
    row = ranges["0..0,0..2"]
    assert row["low"] <= truth[:3].sum() <= row["high"]
    # A whole block is known exactly.
    assert ranges["0..1,0..0"]["low"] == pytest.approx(truth[[0, 3]].sum(), abs=1e-12)
    assert ranges["0..1,0..0"]["high"] == pytest.approx(truth[[0, 3]].sum(), abs=1e-12)


def test_quantiles_and_projections_can_be_asked_for(tmp_path: Path):
    file = configured(tmp_path)
    ages = "".join(f"{age}\n" for age in range(101)) * 5
    reports = invoke("privatize", "-c", file, "ages", stdin=ages).stdout
    asked = ["--quantile", "0.5", "--project", "simplex", "--top", "all"]
    document = json.loads(invoke("estimate", "-c", file, *asked, "ages", stdin=reports).stdout)
    shares = [entry["share"] for entry in document["distribution"]]
    assert sum(shares) == pytest.approx(1.0)
    assert min(shares) >= 0.0
    assert document["projection"] == "simplex"
    assert [entry["p"] for entry in document["quantiles"]] == [0.5]
    low, high = document["quantiles"][0]["value"]
    assert high - low == pytest.approx(10.0)


HOURS = """
[collection.hours]
mechanism = "MECHANISM"
epsilon = 1.0
domain = { sizes = [7, 24] }
minimum = 1

[collection.weights]
mechanism = "MECHANISM"
epsilon = 0.5
domain = { interval = [40.0, 120.0], bins = 16 }
minimum = 1
"""


@pytest.mark.parametrize(
    ("mechanism", "widest", "bins"), [("l1-geometric", 0.2, 4), ("l1-bits", 0.6, 10)]
)
def test_ordered_domains_answer_ranges_and_quantiles(
    tmp_path: Path, mechanism: str, widest: float, bins: int
):
    """Bernstein bounds hold all together at every n: this fails with probability below 1e-7."""
    file = configured(tmp_path, HOURS.replace("MECHANISM", mechanism))
    rng = np.random.default_rng(8)
    days, hours = rng.integers(0, 7, 20_000), rng.binomial(23, 0.4, 20_000)
    lines = "".join(f"{day},{hour}\n" for day, hour in zip(days, hours, strict=True))
    reports = invoke("privatize", "-c", file, "hours", stdin=lines)
    asked = ["--method", "bernstein", "--simultaneous", "--confidence", "0.9999999"]
    asked += ["--range", "1..4,6..12", "--range", "0..6,0..8", "--range", "0..6,0..23"]
    result = invoke("estimate", "-c", file, *asked, "hours", stdin=reports.stdout)
    assert (result.exit_code, result.stderr) == (0, "")
    ranges = {entry["name"]: entry for entry in json.loads(result.stdout)["ranges"]}
    week = (days >= 1) & (days <= 4) & (hours >= 6) & (hours <= 12)
    for name, truth in (("1..4,6..12", week.mean()), ("0..6,0..8", (hours <= 8).mean())):
        assert ranges[name]["low"] <= truth <= ranges[name]["high"]
        assert ranges[name]["high"] - ranges[name]["low"] < widest
    whole = ranges["0..6,0..23"]
    assert (whole["low"], whole["share"], whole["high"]) == (1.0, 1.0, 1.0)
    weights = rng.normal(75, 10, 20_000).clip(40, 120)
    lines = "".join(f"{weight}\n" for weight in weights)
    reports = invoke("privatize", "-c", file, "weights", stdin=lines)
    asked = ["--quantile", "0.5", "--quantile", "0.9", *asked[:5]]
    result = invoke("estimate", "-c", file, *asked, "weights", stdin=reports.stdout)
    for entry, truth in zip(
        json.loads(result.stdout)["quantiles"], np.quantile(weights, [0.5, 0.9]), strict=True
    ):
        assert entry["low"][0] <= truth <= entry["high"][1]
        assert entry["high"][1] - entry["low"][0] <= 5.0 * bins
    certificates = json.loads(invoke("certify", "-c", file).stdout)["collections"]
    assert [c["pass"] for c in certificates] == [True, True]
    # 16 values have 16 reports, or 2^15.
    expected = "enumeration" if mechanism == "l1-geometric" else "structure"
    assert [c["proof"] for c in certificates] == ["structure", expected]
    assert "|u - v| + width" in certificates[1]["policy"]["guarantee"]


def test_certificates_say_what_is_disclosed(tmp_path: Path):
    file = configured(tmp_path)
    document = json.loads(invoke("certify", "-c", file).stdout)
    assert document["pass"] is True
    assert [c["collection"] for c in document["collections"]] == ["places", "modes", "ages"]
    places = document["collections"][0]
    assert places["pass"] is True
    assert 0 < places["loss"]["low"] <= places["loss"]["high"] <= 3.0
    assert places["unprotected_pairs"] == 6 * 5 - 3 * 2
    assert any("block" in phrase for phrase in places["disclosed"])
    assert any("1s" in phrase for phrase in places["disclosed"])
    one = json.loads(invoke("certify", "-c", file, "modes").stdout)
    assert [c["collection"] for c in one["collections"]] == ["modes"]


def test_a_failed_certificate_is_a_failed_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from dataclasses import replace

    from ldpstream.mechanisms.high_low import HighLow

    honest = HighLow.certify
    monkeypatch.setattr(HighLow, "certify", lambda self: replace(honest(self), passed=False))
    result = invoke("certify", "-c", configured(tmp_path))
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert (document["pass"], [c["pass"] for c in document["collections"]]) == (
        False,
        [True, False, True],
    )


def test_help_and_version_import_no_command():
    code = (
        "import sys; from ldpstream.agents.cli.main import main\n"
        "try: main(sys.argv[1:])\n"
        "finally: print(sorted({'faust', 'aiokafka', 'pydantic', 'numpy'} & set(sys.modules)))"
    )
    for option in ("--help", "--version"):
        out = subprocess.run([sys.executable, "-c", code, option], capture_output=True, text=True)
        assert out.stdout.endswith("[]\n"), out.stderr
    assert __version__ in out.stdout
    help_text = invoke("--help").stdout
    assert all(name in help_text for name in COMMANDS)


def test_privatize_needs_no_broker_clients(tmp_path: Path):
    code = (
        "import sys; from ldpstream.agents.cli.main import main\n"
        "try: main(sys.argv[1:])\n"
        "finally: print(sorted({'faust', 'aiokafka', 'scipy'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", code, "privatize", "-c", configured(tmp_path), "modes"]
    out = subprocess.run(command, input="bus\n", capture_output=True, text=True)
    assert out.stdout.endswith("[]\n"), out.stderr


def test_a_pipe_of_real_processes(tmp_path: Path):
    file = configured(tmp_path)
    reports = spawn("privatize", "-c", file, "modes", stdin=b"bus\n" * 50 + b"train\n" * 150)
    assert (reports.returncode, reports.stderr) == (0, b"")
    estimate = spawn("estimate", "-c", file, "modes", stdin=reports.stdout)
    assert (estimate.returncode, estimate.stderr) == (0, b"")
    assert json.loads(estimate.stdout)["n"] == 200


def test_a_reader_that_goes_away_is_no_error_to_speak_of(tmp_path: Path):
    values = tmp_path / "values.csv"
    values.write_text("bus\n" * 200_000)
    code = "from ldpstream.agents.cli.main import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", code, "privatize", "-c", configured(tmp_path), "modes", str(values)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        os.read(process.stdout.fileno(), 10)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 1


def test_unknown_commands_and_options_are_wrong_use(tmp_path: Path):
    assert "No such command 'foo'" in refused(invoke("foo"))
    file = configured(tmp_path)
    assert "No such option" in refused(invoke("estimate", "-c", file, "--foo", "places"))
    assert "Missing argument 'NAME'" in refused(invoke("estimate", "-c", file))
    assert invoke().exit_code == 2


def test_configurations_are_refused_by_file_and_key(tmp_path: Path):
    file = configured(tmp_path, PLACES + 'window = { size = "1h", hop = "2h" }\n')
    message = f"{file}: collection.ages.window.hop: expected at most size (1h), got 2h"
    for command in (["privatize", "-c", file, "modes"], ["certify", "-c", file]):
        assert refused(invoke(*command)) == message
    absent = str(tmp_path / "absent.toml")
    message = f"{absent}: cannot read it: No such file or directory"
    assert refused(invoke("estimate", "-c", absent, "modes")) == message
    file = configured(tmp_path)
    message = refused(invoke("privatize", "-c", file, "plaices"))
    assert message == f"{file}: expected one of the collections places, modes, ages, got plaices"
