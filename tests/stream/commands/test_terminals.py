"""Output into a pipe ignores the settings of terminals: nothing is cut, and nothing moves."""

import io
import json
import logging
import re

import pytest
from rich.console import Console
from rich.text import Text

from ldpstream.agents.cli.terminal.tables import FittingTable, table_console
from ldpstream.agents.engine.process import FORMAT_VARIABLE, set_up_logging
from tests.stream.logs import logging_restored

TERMINALS = [
    {"FORCE_COLOR": "1", "COLUMNS": "40", "TERM": "xterm-256color"},
    {"TTY_COMPATIBLE": "1", "COLUMNS": "300", "TERM": "dumb"},
    {"NO_COLOR": "1", "CI": "true", "COLUMNS": "20"},
    {"FORCE_COLOR": "1", "TTY_INTERACTIVE": "1", "LINES": "5"},
]
_COLOUR = re.compile(r"\x1b\[[\d;]*m")


def say(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]) -> None:
    for name in set().union(*TERMINALS):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("environment", TERMINALS)
def test_tables_in_a_pipe_are_wide_enough_for_their_lines(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    environment: dict[str, str],
):
    say(monkeypatch, environment)
    line = " ".join(["a word"] * 20)
    table_console().print(line)
    assert _COLOUR.sub("", capsys.readouterr().out) == f"{line}\n"


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_no_table_cuts_a_number(width: int):
    table = FittingTable()
    table.add_column("value")
    for heading in ("share", "low", "count"):
        table.add_column(heading, justify="right")
    table.add_row("a very long label, of several words", "63.60%", "−50.90%", "1,234,567,890")
    table.add_row(Text("b" * 50), "0.00%", "", "12")
    console = Console(file=io.StringIO(), width=width)
    console.print(table)
    assert isinstance(console.file, io.StringIO)
    said = console.file.getvalue()
    assert max(map(len, said.splitlines())) <= width
    assert "…" not in said
    for number in ("63.60%", "−50.90%", "1,234,567,890", "0.00%", "12"):
        assert number in said
    assert said.count("b") == 51  # One is in the word `label`.
    assert ("share 63.60%," in said.replace("\n", " ")) == (width < 60)


def test_a_log_of_json_has_an_object_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv(FORMAT_VARIABLE, "json")
    with logging_restored():
        set_up_logging()
        logging.getLogger("ldpstream.agents").warning("topic %s:\n%d lost", "a", 3)
    (line,) = capsys.readouterr().err.splitlines()
    event = json.loads(line)
    assert (event["level"], event["message"]) == ("WARNING", "topic a:\n3 lost")
    assert event["time"].endswith("Z")
