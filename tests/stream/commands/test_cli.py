"""The command line without a broker: init, privatize, certify, and how errors end."""

import asyncio
import fcntl
import json
import math
import os
import signal
import subprocess
import sys
import termios
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ldpstream import __version__
from ldpstream.agents.cli.main import COMMANDS
from ldpstream.agents.config import load_config
from ldpstream.mechanisms.families.groups.high_low import HighLow
from tests.forked import MAIN, Forked
from tests.processes import PATIENCE_SECONDS, eventually
from tests.stream.cli import configured, invoke, refused


def imported(packages: set[str], *arguments: str, stdin: str = "") -> str:
    """Run a command in a new interpreter; after its output comes the list of those imported."""
    code = (
        "import sys; from ldpstream.agents.cli.main import main\n"
        "try: main(sys.argv[1:])\n"
        f"finally: print(sorted({packages} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True)
    assert done.stdout.endswith("]\n"), done.stderr
    return done.stdout


def test_the_written_configuration_can_be_used_at_once(tmp_path: Path):
    file = tmp_path / "new.toml"
    result = invoke("init", str(file))
    assert (result.exit_code, result.stdout) == (0, "")
    assert str(file) in result.stderr
    assert invoke("privatize", "-c", str(file), "checkins", stdin="0,0\n124,349\n").exit_code == 0
    message = refused(invoke("init", str(tmp_path / "no" / "such.toml")))
    assert message.endswith("such.toml: cannot write it: No such file or directory")


def test_the_embedded_broker_needs_one_line_without_its_comment_mark(tmp_path: Path):
    file = tmp_path / "kafka.toml"
    assert invoke("init", str(file)).exit_code == 0
    kafka = load_config(file, environment={})
    setting = "enable_idempotence = false"
    file.write_text(file.read_text().replace(f"# {setting}", setting))
    embedded = load_config(file, environment={})
    assert (kafka.kafka.options, embedded.kafka.options) == ({}, {"enable_idempotence": False})


def test_privatize_writes_one_object_a_line(tmp_path: Path):
    file = configured(tmp_path)
    spec = load_config(file).collections["places"].spec
    result = invoke("privatize", "-c", file, "places", stdin="0,0\n1,2\r\n0,1")
    assert (result.exit_code, result.stderr) == (0, "")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [list(row) for row in rows] == [["collection", "fingerprint", "report"]] * 3
    assert {row["collection"] for row in rows} == {"places"}
    assert {row["fingerprint"] for row in rows} == {spec.fingerprint.hex()}


def test_times_are_truncated_on_the_device(tmp_path: Path):
    file = configured(tmp_path)
    values = "2026-11-21T10:00:00.999Z,bus\n1795255201500,train\n2026-11-21T12:00:03+02:00,bus\n"
    result = invoke("privatize", "-c", file, "--times", "--replay", "modes", stdin=values)
    times = [json.loads(line)["time"] for line in result.stdout.splitlines()]
    assert times == [f"2026-11-21T10:00:0{second}Z" for second in (0, 1, 3)]


def test_labels_may_be_quoted_and_files_may_have_a_byte_order_mark(tmp_path: Path):
    file = configured(tmp_path)
    values = tmp_path / "values.csv"
    values.write_text('\ufeff"walk, slowly"\nbus\n', encoding="utf-8")
    result = invoke("privatize", "-c", file, "modes", str(values))
    assert (result.exit_code, len(result.stdout.splitlines())) == (0, 2)


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
    honest = HighLow.certify
    monkeypatch.setattr(HighLow, "certify", lambda self: replace(honest(self), passed=False))
    result = invoke("certify", "-c", configured(tmp_path))
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert (document["pass"], [c["pass"] for c in document["collections"]]) == (
        False,
        [True, False, True],
    )


def test_certify_gives_the_errors_of_tests_between_two_values(tmp_path: Path):
    """[CA] Theorem 1: a sensitive value against another, and the best tests of high-low."""
    file = configured(tmp_path)
    ran = invoke("certify", "-c", file, "modes", "--pair", "bus", '"walk, slowly"')
    assert ran.exit_code == 0, ran.output
    region = json.loads(ran.stdout)["collections"][0]["region"]
    assert (region["value"], region["other"]) == ("bus", "walk, slowly")
    assert region["budgets"] == [1.0, "inf"]
    # a = 1 and b infinite: no test misses fewer than e^-1 of its alarms without ever being wrong.
    assert region["corner"] == pytest.approx([math.exp(-1), 0.0])
    assert region["inside"] is True
    for alarm, missed in region["boundary"]:
        assert math.e * alarm + missed >= 1.0 - 1e-12


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["modes", "--pair", "bus", "boat"], "--pair: expected one of the 3 labels"),
        (["modes", "--pair", "bus", "bus"], "--pair: expected two different values, got bus twice"),
        (["--pair", "bus", "train"], "--pair: expected NAME"),
    ],
)
def test_impossible_pairs_are_refused(tmp_path: Path, options: list[str], message: str):
    ran = invoke("certify", "-c", configured(tmp_path), *options)
    assert ran.exit_code != 0
    assert message in ran.output


def test_help_and_version_import_no_command():
    for option in ("--help", "--version"):
        said = imported({"faust", "aiokafka", "pydantic", "numpy"}, option)
        assert said.endswith("[]\n")
    assert __version__ in said
    help_text = invoke("--help").stdout
    assert all(name in help_text for name in COMMANDS)
    assert invoke().exit_code == 2


@pytest.mark.slow
def test_privatize_needs_no_broker_clients(tmp_path: Path):
    command = "privatize", "-c", configured(tmp_path), "modes"
    assert imported({"faust", "aiokafka", "scipy"}, *command, stdin="bus\n").endswith("[]\n")


@pytest.mark.slow
def test_a_closed_pipe_ends_a_command_quietly(tmp_path: Path):
    values = tmp_path / "values.csv"
    values.write_text("bus\n" * 200_000)
    with Forked(["privatize", "-c", configured(tmp_path), "modes", str(values)]) as process:
        os.read(process.stdout.fileno(), 10)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 1


def test_a_command_that_is_stopped_at_a_full_pipe_loses_no_lines(tmp_path: Path):
    text = 'mechanism = "randomized-response"\nepsilon = 1\ndomain = { values = ["bus", "car"] }\n'
    file, values = configured(tmp_path, f"[collection.modes]\n{text}"), tmp_path / "values"
    values.write_text("bus\n" * 5_000)
    command = [sys.executable, "-c", MAIN, "privatize", "-c", file, "modes", str(values)]
    # Python reads this as it starts: not where a process is forked.
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as ran:

        def full() -> bool:
            waiting = fcntl.ioctl(ran.stdout, termios.FIONREAD, bytes(4))
            return int.from_bytes(waiting, sys.byteorder) >= 65_536

        try:
            asyncio.run(eventually(full, what="a full pipe"))
            for _ in range(3):
                for number in (signal.SIGSTOP, signal.SIGCONT):
                    ran.send_signal(number)
                    time.sleep(0.1)
            written, _ = ran.communicate(timeout=PATIENCE_SECONDS)
        finally:
            ran.kill()
    assert (ran.returncode, len([json.loads(line) for line in written.splitlines()])) == (0, 5_000)
