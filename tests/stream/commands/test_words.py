"""Collections of unknown words: configuration, certificate, privacy statement and refusals."""

import json
from pathlib import Path

import pytest

from ldpstream.agents.config import ConfigError, load_config
from tests.stream.cli import configured, invoke, refused

WORDS = """
[collection.words]
mechanism = "projective-geometry"
epsilon = 4.0
domain = { words = { bits = 16, rounds = 3, kept = 4 } }
window = { size = "1d" }
"""


def test_a_certificate_says_what_a_device_loses_in_all(tmp_path: Path):
    result = invoke("certify", "-c", configured(tmp_path, WORDS), "--windows", "5")
    assert result.exit_code == 0, result.output
    (certificate,) = json.loads(result.stdout)["collections"]
    own = certificate["words"]
    assert (own["rounds"], own["loss"]["run"]["exact"]) == (3, "4")
    assert "one report, which loses at most 4" in own["said"]
    # Five windows in a row touch three runs at most, each of one report.
    assert certificate["windows"]["loss"]["exact"] == "12"
    config = load_config(configured(tmp_path, WORDS), environment={})
    collection = config.collections["words"]
    assert own["said"] in collection.privacy.protected
    assert collection.topics.rounds == "words.reports.rounds"


@pytest.mark.parametrize(
    "more", ['hop = "12h"', 'grace = "1h" }\nspread = { reports = 1, horizon = "3d"']
)
def test_windows_that_cannot_be_rounds_are_refused(tmp_path: Path, more: str):
    text = WORDS.replace('size = "1d"', f'size = "1d", {more}')
    with pytest.raises(ConfigError, match=r"domain.words: expected windows that do not overlap"):
        load_config(configured(tmp_path, text), environment={})


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("privatize", "words"), "domain.words: expected send --ledger"),
        (("send", "words"), "domain.words: expected send --ledger"),
        (("simulate", "words"), "domain.words: expected send --ledger"),
        (("plan", "words", "--respondents", "9"), "words: expected known values, got words"),
    ],
)
def test_commands_without_a_round_are_refused(tmp_path: Path, command: tuple[str, ...], said: str):
    result = invoke(command[0], "-c", configured(tmp_path, WORDS), *command[1:], stdin="ab\n")
    assert said in refused(result)


def test_only_words_are_discovered(tmp_path: Path):
    said = refused(invoke("discover", "-c", configured(tmp_path), "modes"))
    assert said.startswith("collection.modes.domain: expected words")
