"""A terminal that cannot print a label shows a question mark; programs always get UTF-8."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from ldpstream.agents.cli.main import COMMANDS, main
from tests.stream.cli import configured, invoke
from tests.stream.logs import logging_restored

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
