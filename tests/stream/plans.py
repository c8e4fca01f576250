"""Collections of every kind to plan for, and the documents of their plans."""

import json
from pathlib import Path
from typing import Any

from tests.stream.cli import configured, invoke

COLLECTIONS = """
[collection.ages]
mechanism = "l1-geometric"
epsilon = 1.0
domain = { interval = [0.0, 64.0], bins = 16 }
publish = { top = 2, quantiles = [0.5], ranges = { young = [0, 20] } }

[collection.places]
mechanism = "block-hadamard"
epsilon = 1.0
domain = { grid = [4, 6], blocks = [2, 3] }
estimand = "population"

[collection.modes]
mechanism = "high-low"
epsilon = 1.0
domain = { values = ["bus", "train", "walk, slowly"] }
sensitive = ["bus"]

[collection.answers]
mechanism = "binary"
epsilon = [1.0, inf]
domain = { values = ["yes", "no"] }

[collection.clicks]
mechanism = "lip"
epsilon = 1.0
prior = { levels = 4 }
domain = { values = ["no", "yes"] }

[collection.whole]
mechanism = "block-hadamard"
one_report = true
epsilon = 1.0
domain = { grid = [4, 6], blocks = [2, 3] }
publish = { top = 0, ranges = { block = [[0, 1], [3, 5]] } }
"""
_PLANS: dict[tuple[str, ...], str] = {}
NAMES = ("ages", "places", "modes", "answers", "clicks", "whole")


def plan(tmp_path: Path, name: str, *options: str) -> dict[str, Any]:
    """Return the document of a plan, which depends on the name and the options alone."""
    file = configured(tmp_path, COLLECTIONS)
    if (name, *options) not in _PLANS or "--limit" in options:
        result = invoke("plan", "-c", file, name, "--respondents", "10000", "--json", *options)
        assert (result.exit_code, result.stderr) == (0, "")
        _PLANS[name, *options] = result.stdout
    document: dict[str, Any] = json.loads(_PLANS[name, *options])
    return document
