"""The two journeys that architecture.md tells a newcomer, against the calls of a worker."""

import json
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.broker.conftest import on_one_broker
from tests.lab import Lab

pytestmark = pytest.mark.broker

PAGE = Path(__file__).parents[2] / "docs" / "internals" / "architecture.md"
MOST_STEPS = 12
_SECTION = re.compile(r"^### (.+)\n\n((?:\d+\. .+\n)+)", re.MULTILINE)
_STEP = re.compile(r"^\d+\. `([\w.]+)` \(`([\w/]+\.py)`\)", re.MULTILINE)


def journeys() -> dict[str, list[str]]:
    """Return the steps of each journey on the page, as `file function`."""
    sections = _SECTION.findall(PAGE.read_text("utf-8"))
    return {
        heading: [f"{file} {function}" for function, file in _STEP.findall(steps)]
        for heading, steps in sections
        if _STEP.search(steps)
    }


def first_missing(steps: Iterable[str], calls: Iterable[str]) -> str | None:
    """Return the first step that does not follow the one before it among the calls, or None."""
    rest = iter(calls)
    return next((step for step in steps if step not in rest), None)


def test_a_journey_has_few_steps_and_each_names_file_and_function() -> None:
    for heading, steps in _SECTION.findall(PAGE.read_text("utf-8")):
        if heading in journeys():
            assert len(journeys()[heading]) == len(steps.splitlines()) <= MOST_STEPS


def test_steps_out_of_order_are_found() -> None:
    assert first_missing("ab", "xaxb") is None
    assert first_missing("ab", "ba") == "b"
    assert first_missing("aa", "a") == "a"


@on_one_broker
def test_a_worker_calls_the_steps_in_their_order(lab: Lab) -> None:
    command = [sys.executable, "-m", "tests.broker.walked", str(lab.file), lab.collection.name]
    completed = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    calls = json.loads(completed.stdout.splitlines()[-1])
    assert calls.keys() == journeys().keys()
    for heading, steps in journeys().items():
        assert first_missing(steps, calls[heading]) is None, heading
