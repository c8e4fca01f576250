"""Every PromQL expression of the shipped rules and dashboards, and what it asks for."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

DOCKER = Path(__file__).resolve().parents[2] / "docker"
BOARDS = sorted((DOCKER / "grafana" / "dashboards").glob("*.json"))
_RULES = ("recording.yml", "alerts.yml", "intake.yml")
_WORDS = {"by", "on", "and", "or", "group_left", "le", "unless"}


def rules() -> Iterator[dict[str, Any]]:
    """Yield every rule."""
    for group in _groups():
        yield from group["rules"]


def recorded(name: str) -> list[str]:
    """Return the series that a group of rules records."""
    (found,) = (group for group in _groups() if group["name"] == name)
    return [rule["record"] for rule in found["rules"]]


def _groups() -> Iterator[dict[str, Any]]:
    for name in _RULES:
        yield from yaml.safe_load((DOCKER / "prometheus" / name).read_text())["groups"]


def board_expressions() -> Iterator[tuple[str, str]]:
    """Yield `(where, expression)` of all panels, variables and annotations of all dashboards."""
    for path in BOARDS:
        board = json.loads(path.read_text())
        for panel in board["panels"]:
            for target in panel.get("targets", []):
                yield f"{path.stem}: {panel['title']}", target["expr"]
        for annotation in board["annotations"]["list"]:
            yield f"{path.stem}: {annotation['name']}", annotation["expr"]
        for variable in board["templating"]["list"]:
            if variable["type"] != "query":
                continue
            found = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"])
            assert found is not None, variable
            yield f"{path.stem}: ${variable['name']}", f"count by ({found[2]}) ({found[1]})"


def metrics_in(expression: str) -> set[str]:
    """Return the names of the series that an expression reads."""
    bare = re.sub(r'"[^"]*"', '""', expression)
    bare = re.sub(r"\b(by|on|without|ignoring|group_left)\s*\([^)]*\)", " ", bare)
    bare = re.sub(r"\{[^}]*\}|\[[^]]*\]", " ", bare)
    names = re.findall(r"[a-zA-Z_:][a-zA-Z0-9_:]*(?!\s*\(|[\w:])", bare)
    return {name for name in names if name not in _WORDS}
