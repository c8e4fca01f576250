"""Commands with `one_report`, without a broker: what they do, and what they refuse."""

import json
from pathlib import Path

import numpy as np
import pytest

from ldpstream.agents.cli.send import Chunk, frames
from ldpstream.agents.config import load_config
from ldpstream.agents.device import Framer
from tests.stream.cli import certified, configured, invoke, refused

TABLE = """
[collection.modes]
mechanism = "randomized-response"
epsilon = 0.5
domain = { values = ["bus", "train", "walk"] }
one_report = true
partitions = 3
window = { size = "1h" }
"""
NOON_MS = 1_795_262_400_000


@pytest.fixture
def file(tmp_path: Path) -> str:
    return configured(tmp_path, TABLE)


@pytest.mark.parametrize(
    ("arguments", "instead"),
    [
        (["privatize"], "send --ledger, because a line of privatize has no token"),
        (["estimate"], "a worker, because lines of reports have no tokens"),
        (["send"], "--ledger, which keeps the secret of the device's tokens"),
        (["send", "--reports"], "--ledger, which keeps the secret of the device's tokens"),
    ],
)
def test_commands_without_tokens_are_refused(file: str, arguments: list[str], instead: str):
    result = invoke(arguments[0], "-c", file, *arguments[1:], "modes", stdin="bus\n")
    message = refused(result)
    assert message.strip().endswith(f"collection.modes.one_report: expected {instead}")


def test_the_certificate_and_the_device_document_state_one_report(file: str):
    (one,) = certified(file)
    assert "a token: which reports of one window are one device's" in one["disclosed"]
    document = json.loads(invoke("spec", "-c", file, "modes").stdout)
    rule = json.loads(document["canonical"])["one_report"]
    assert rule == {"partitions": 3, "window_ms": 3_600_000}


def test_send_makes_frames_of_one_partition(file: str):
    spec = load_config(file).collections["modes"].spec
    assert spec.one_report is not None
    secrets, times_ms = [bytes([n]) * 16 for n in range(50)], np.full(50, NOON_MS)
    tokens = np.concatenate([spec.tokens(secret, times_ms[:1]) for secret in secrets])
    found = list(frames(spec, Chunk(np.zeros(50, int), times_ms, tokens), 8))
    assert sum(reports for _, reports, _ in found) == 50
    assert max(reports for _, reports, _ in found) == 8
    assert {partition for _, _, partition in found} == {0, 1, 2}
    for frame, _, partition in found:
        assert spec.one_report.frame_partition(frame) == partition


def test_a_framer_takes_tokens_of_one_partition(file: str):
    spec = load_config(file).collections["modes"].spec
    assert spec.one_report is not None
    times_ms = np.full(30, NOON_MS)
    tokens = np.concatenate([spec.tokens(bytes([n]) * 16, times_ms[:1]) for n in range(30)])
    one, other, _ = spec.one_report.by_partition(tokens)
    framer = Framer(spec)
    for place in one:
        assert framer.add(np.zeros(1, int), times_ms[:1], tokens[[place]]) == 1
    with pytest.raises(ValueError, match="one partition"):
        framer.add(np.zeros(1, int), times_ms[:1], tokens[other[:1]])
    with pytest.raises(ValueError, match="one token of 8 bytes"):
        framer.add(np.zeros(1, int), times_ms[:1])
    expected = spec.frame_reports(
        np.zeros(len(one), int), times_ms=times_ms[one], tokens=tokens[one]
    )
    assert framer.take() == expected
