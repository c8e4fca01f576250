"""What terminals, pipes and programs get, and Ctrl-C while a command reads."""

import asyncio
import io
import json
import logging
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console
from rich.text import Text

from ldpstream.agents.cli.main import COMMANDS, main
from ldpstream.agents.cli.terminal.broker import interruptibly
from ldpstream.agents.cli.terminal.tables import FittingTable, table_console
from ldpstream.agents.engine.process import FORMAT_VARIABLE, set_up_logging
from tests.stream.cli import configured, invoke
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


CONFIGURATION = """
[collection.modes]
mechanism = "block-hadamard"
epsilon = 60.0
domain = { values = ["bus", "列車", "caf\u00e9"] }
minimum = 1
publish = { linear = { "料金" = { "列車" = 2.5 } } }
"""
PLAN = ("plan", "modes", "--respondents", "9", "--search", "0")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    configured(tmp_path, CONFIGURATION)
    reports = invoke("privatize", "modes", stdin="列車\n" * 50)
    (tmp_path / "reports").write_text(reports.stdout)
    return tmp_path


def printed(charset: str, *command: str) -> bytes:
    with logging_restored():
        result = CliRunner(charset=charset).invoke(main, list(command))
    assert result.exit_code == 0, result.exception
    return result.stdout_bytes


@pytest.mark.parametrize("charset", ["cp1252", "ascii"])
@pytest.mark.parametrize(
    "command",
    [
        ("estimate", "modes", "reports"),
        PLAN,
        ("keys",),
        ("--help",),
        *((name, "--help") for name in COMMANDS),
    ],
)
def test_people_get_what_their_terminal_has(folder: Path, charset: str, command: tuple[str, ...]):
    text = printed(charset, *command).decode(charset)
    if "reports" in command:
        assert "??" in text
        assert ("caf\u00e9" if charset == "cp1252" else "caf?") in text


@pytest.mark.parametrize("charset", ["cp1252", "ascii"])
@pytest.mark.parametrize(
    "command",
    [
        ("estimate", "--json", "modes", "reports"),
        ("estimate", "--csv", "modes", "reports"),
        ("certify", "modes"),
        ("spec", "modes"),
        (*PLAN, "--json"),
    ],
)
def test_programs_get_utf_8(folder: Path, charset: str, command: tuple[str, ...]):
    own = printed(charset, *command)
    if command[0] != "plan":  # its times differ
        assert own == printed("utf-8", *command)
    if command[1] == "--json":
        values = json.loads(own)["distribution"]
        assert "列車" in [one["value"] for one in values]


def interrupted_reads() -> Iterator[int]:
    """Two reads, with a SIGINT during the second one."""
    yield 1
    signal.raise_signal(signal.SIGINT)
    yield 2


async def read(reached: list[int]) -> None:
    for item in interruptibly(interrupted_reads()):
        reached.append(item)


def test_ctrl_c_ends_a_read_at_once():
    # A shell that runs the tests in the background starts them with SIGINT ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    reached: list[int] = []
    try:
        with pytest.raises(KeyboardInterrupt):
            asyncio.run(read(reached))
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert reached == [1]


def test_a_process_that_ignores_ctrl_c_goes_on():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    reached: list[int] = []
    try:
        asyncio.run(read(reached))
    finally:
        signal.signal(signal.SIGINT, before)
    assert reached == [1, 2]


def test_between_reads_the_former_handler_is_installed():
    before = signal.getsignal(signal.SIGINT)
    assert [signal.getsignal(signal.SIGINT) for _ in interruptibly([1, 2])] == [before, before]
