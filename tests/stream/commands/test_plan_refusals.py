"""What `ldpstream plan` refuses: searches, priors, options and pictures."""

from pathlib import Path

import pytest

from tests.stream.cli import configured, invoke, refused
from tests.stream.plans import COLLECTIONS

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
        (["modes", "--respondents", "0"], "Invalid value for '--respondents': 0 is not in the"),
        (["modes", "--respondents", f"1{'0' * 400}"], "Invalid value for '--respondents'"),
        (["modes", "--respondents", "-5"], "Invalid value for '--respondents'"),
        (["modes", "--respondents", "many"], "Invalid value for '--respondents'"),
        (["modes"], "Missing option '--respondents'"),
        (["none", "--respondents", "10"], "expected one of the collections ages, places, modes"),
        (["modes", "--respondents", "10", "--workload", "all"], "Invalid value for '--workload'"),
        (["modes", "--respondents", "10", "--prior", "none.txt"], "--prior: expected uniform, zip"),
        (["modes", "--respondents", "10", "--limit", "0"], "Invalid value for '--limit'"),
        (
            ["modes", "--respondents", "10", "--limit", "1e-9"],
            "--limit: expected a longer time: no",
        ),
    ],
)
def test_wrong_use_is_refused_by_name(tmp_path: Path, arguments: list[str], message: str):
    result = invoke("plan", "-c", configured(tmp_path, COLLECTIONS), *arguments)
    assert message in refused(result)
