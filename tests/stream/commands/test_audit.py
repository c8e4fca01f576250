"""`ldpstream audit` finds a client that loses more than its policy allows; ours does not."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from ldpstream.agents.cli.audit import _SIGNIFICANCE
from ldpstream.agents.cli.terminal.reports import write_reports
from ldpstream.agents.config import load_config
from ldpstream.estimators.audit import realised_losses
from tests.stream.cli import configured, invoke, refused

DRAWS = 1_000_000


def table(mechanism: str, epsilon: float, size: int = 4, name: str = "modes") -> str:
    return (
        f'[collection.{name}]\nmechanism = "{mechanism}"\nepsilon = {epsilon}\n'
        f"domain = {{ size = {size} }}\nminimum = 1\n"
    )


def counted(channel: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    first, second = (
        np.array([draw.multinomial(DRAWS // 2, row) for row in channel]) for _ in range(2)
    )
    return first, second


@pytest.mark.parametrize("mechanism", ["randomized-response", "block-hadamard"])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("size", [2, 4, 16])
def test_an_excess_of_five_percent_is_caught(mechanism: str, epsilon: float, size: int):
    """With a million draws for each value the bound is above epsilon, and not above the loss.

    By chance the first fails with probability below 1e-6, the second below 0.001.
    """
    ratio = np.exp(1.05 * epsilon)
    if mechanism == "randomized-response":
        channel = (1 + (ratio - 1) * np.eye(size)) / (ratio + size - 1)
    else:
        outputs = 2 ** int(np.ceil(np.log2(size + 1)))
        rows, columns = np.arange(1, size + 1)[:, None], np.arange(outputs)
        signs = np.bitwise_count(rows & columns) % 2
        channel = np.where(signs == 0, ratio, 1.0) / (outputs / 2 * (ratio + 1))
    bounds = realised_losses(*counted(channel, 5), significance=_SIGNIFICANCE)
    assert epsilon < bounds.max() <= 1.05 * epsilon


def test_all_bounds_hold_together():
    """A client that spends all of its policy fails an audit with probability 0.001 at most."""
    channel = (1 + (np.e - 1) * np.eye(3)) / (np.e + 2)
    draw = np.random.default_rng(6)
    beyond = 0
    for _ in range(200):
        halves = (np.array([draw.multinomial(2_000, row) for row in channel]) for _ in range(2))
        beyond += realised_losses(*halves, significance=_SIGNIFICANCE).max() > 1.0
    assert beyond <= 5


def test_our_own_client_passes(tmp_path: Path):
    for mechanism in ("randomized-response", "block-hadamard"):
        file = configured(tmp_path, table(mechanism, 1.0))
        ran = invoke("audit", "-c", file, "modes", "--draws", "100000")
        found = json.loads(ran.stdout)
        assert (ran.exit_code, found["pass"], found["beyond"]) == (0, True, [])
        assert found["pairs"] == 12
        assert 0.9 < found["nearest"]["loss_at_least"] <= 1.0


@pytest.mark.slow
def test_a_client_that_spends_more_than_it_says_is_found(tmp_path: Path):
    """Its reports claim the spec with epsilon 1, and are drawn with 1.5."""
    file = configured(tmp_path, table("randomized-response", 1.0))
    spec = load_config(file).collections["modes"].spec
    reports = spec.mechanism.possible_reports()
    lines = write_reports(spec, reports, None).decode().splitlines(keepends=True)
    client = tmp_path / "client.py"
    client.write_text(
        "import random, sys\n"
        f"lines = {lines!r}\n"
        f"kept = {float(np.exp(1.5) / (np.exp(1.5) + 3))!r}\n"
        "for line in sys.stdin:\n"
        "    value = int(line)\n"
        "    others = [other for other in range(4) if other != value]\n"
        "    drawn = value if random.random() < kept else random.choice(others)\n"
        "    sys.stdout.write(lines[drawn])\n"
    )
    command = f"{sys.executable} {client}"
    ran = invoke("audit", "-c", file, "modes", "--command", command, "--draws", "20000")
    found = json.loads(ran.stdout)
    assert (ran.exit_code, found["pass"]) == (1, False)
    assert 1.0 < found["beyond"][0]["loss_at_least"] <= 1.5


def test_what_cannot_be_audited_is_refused(tmp_path: Path):
    file = configured(tmp_path, table("randomized-response", 1.0, size=17))
    assert "at most 16 values, got 17" in refused(invoke("audit", "-c", file, "modes"))
    file = configured(tmp_path, table("randomized-response", 1.0))
    ran = invoke("audit", "-c", file, "modes", "--command", "/nowhere/client", "--draws", "1000")
    assert "--command: the client failed" in refused(ran)
    with pytest.raises(ValueError, match="draws of every value"):
        realised_losses(np.zeros((2, 2), int), np.ones((2, 2), int), significance=0.1)
