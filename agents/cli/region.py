"""The errors of tests between two values ([CA] Theorem 1 and Figure 1), for `certify --pair`."""

import csv
from pathlib import Path
from typing import Any

from ldpstream.agents.cli.terminal.errors import Refused
from ldpstream.agents.config import CollectionConfig
from ldpstream.mechanisms.base.canonical import json_number
from ldpstream.mechanisms.base.errors import ValueOutsideDomainError
from ldpstream.mechanisms.channels.error_region import ErrorRegion, channel_boundary


def error_region(collection: CollectionConfig, pair: tuple[str, str]) -> dict[str, Any]:
    """Return the region that the policy leaves to tests of a pair of labels, as CSV writes them.

    `boundary` are the best tests of the realised channel; it is null for a channel that is too
    large to list. A channel keeps the policy at the pair iff all of them are `inside`.

    Raises:
        Refused: naming the label that is not in the domain.
    """
    domain, mechanism = collection.spec.domain, collection.spec.mechanism
    try:
        value, other = domain.parse_columns(list(csv.reader(pair))).tolist()
    except ValueOutsideDomainError as error:
        raise Refused(f"--pair: expected {error.expected}, got {pair[error.position]}") from None
    if value == other:
        raise Refused(f"--pair: expected two different values, got {pair[0]} twice")
    region = ErrorRegion.of(mechanism.policy, value, other)
    document: dict[str, Any] = {
        "value": domain.label(value),
        "other": domain.label(other),
        "budgets": [
            json_number(float("inf") if budget is None else float(budget))
            for budget in (region.forward, region.backward)
        ],
        "corner": list(region.corner()),
        "boundary": None,
    }
    try:
        boundary = channel_boundary(mechanism.channel(), value, other)
    except ValueError as error:
        return document | {"why": str(error)}
    document["boundary"] = [[float(alarm), float(missed)] for alarm, missed in boundary]
    return document | {"inside": region.first_outside(boundary) is None}


def draw_region(document: dict[str, Any], file: Path) -> None:
    """Draw a region as a PNG, with the channel's best tests where they are known.

    Raises:
        Refused: where the file cannot be written.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.4, 5.4), layout="constrained")
    axes = figure.subplots()
    lower = [(0.0, 1.0), tuple(document["corner"]), (1.0, 0.0)]
    upper = [(1.0 - alarm, 1.0 - missed) for alarm, missed in lower]
    axes.fill(*zip(*lower, *upper[::-1], strict=True), color="#cfe0f3", label="the policy allows")
    if document["boundary"] is not None:
        alarms, misses = zip(*document["boundary"], strict=True)
        axes.plot(alarms, misses, marker="s", color="#15803d", label="best tests of the channel")
    axes.plot([0, 1], [1, 0], color="0.5", linestyle=":", label="guessing")
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    value, other = document["value"], document["other"]
    axes.set_xlabel(f"$P_{{FA}}$: the test says {value}, it is {other}")
    axes.set_ylabel(f"$P_{{MD}}$: the test says {other}, it is {value}")
    axes.legend(loc="upper right")
    try:
        figure.savefig(file, dpi=150)
    except OSError as error:
        raise Refused(f"--plot: cannot write {file}: {error.strerror or error}") from error
