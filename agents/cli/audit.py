"""`ldpstream audit`: bound a client's real privacy loss from below by drawing many reports."""

import io
import json
import shlex
import subprocess
from collections.abc import Callable, Iterator
from typing import Any, Final

import click
import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from ldpstream.agents.cli.terminal.common import (
    config_option,
    load_collection,
    number_option,
    print_data,
)
from ldpstream.agents.cli.terminal.errors import FAILED, Refused
from ldpstream.agents.cli.terminal.reports import read_reports
from ldpstream.agents.config import CollectionConfig
from ldpstream.estimators.audit import realised_losses
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.domains.atoms import Atoms
from ldpstream.mechanisms.domains.attributes import Attributes
from ldpstream.mechanisms.domains.parse import Interval, RoundedInterval
from ldpstream.mechanisms.exact.dyadic import float_above
from ldpstream.mechanisms.families.weights.private import WeightedDomain
from ldpstream.mechanisms.wire.spec import CollectionSpec

MOST_VALUES: Final = 16
_AT_ONCE: Final = 100_000
_SIGNIFICANCE: Final = 0.001

Payload = NDArray[np.uint8]


@click.command()
@config_option
@click.option(
    "--command",
    metavar="COMMAND",
    help="A client that reads value lines and writes report lines; by default privatize.",
)
@number_option(
    "--draws", 1_000, 100_000_000, default=1_000_000, text="Reports drawn for each value."
)
@click.argument("name")
@click.pass_context
def audit(
    context: click.Context, config_file: str, name: str, *, command: str | None, draws: int
) -> None:
    """Draw reports of every value, and bound their loss from below; exit 1 if above the policy.

    For at most 16 values. All pairs are bounded together, so a client that keeps the policy fails
    at most one audit in a thousand. A failure shows a violation; a pass proves nothing: use
    `certify` for proof.
    """
    _, collection = load_collection(config_file, name)
    spec = collection.spec
    if spec.mechanism.size > MOST_VALUES:
        raise Refused(f"{name}: expected at most {MOST_VALUES} values, got {spec.mechanism.size}")
    draw = _own(spec) if command is None else _client(collection, shlex.split(command))
    with Console(stderr=True).status(f"drawing reports: {name}"):
        first, second = _counted(spec, draw, draws)
    bounds = realised_losses(first, second, significance=_SIGNIFICANCE)
    document = _document(collection, bounds, draws)
    print_data(json.dumps(document, indent=2, ensure_ascii=False))
    if not document["pass"]:
        context.exit(FAILED)


def _own(spec: CollectionSpec) -> Callable[[int, int], Payload]:
    def draw(value: int, number: int) -> Payload:
        values = np.full(number, value, dtype=np.int64)
        return spec.mechanism.encode(spec.mechanism.privatize(values))

    return draw


def _client(collection: CollectionConfig, command: list[str]) -> Callable[[int, int], Payload]:
    spec, domain = collection.spec, collection.spec.domain
    if isinstance(domain, Attributes | Atoms | Interval | RoundedInterval | WeightedDomain):
        raise Refused("--command: expected values that are labels or whole numbers")

    def draw(value: int, number: int) -> Payload:
        label: Any = domain.label(value)
        columns = label if isinstance(label, list) else [label]
        line = ",".join(str(column) for column in columns) + "\n"
        try:
            ran = subprocess.run(  # noqa: S603  (the command that the user asks to run)
                command, input=line.encode() * number, stdout=subprocess.PIPE, check=True
            )
        except (OSError, subprocess.CalledProcessError) as error:
            raise Refused(f"--command: the client failed: {error}") from error
        chunks = read_reports(io.BytesIO(ran.stdout), spec, chunk=number)
        payload = np.concatenate([spec.mechanism.encode(lines.reports) for lines in chunks])
        if len(payload) != number:
            raise Refused(f"--command: expected {number} report lines, got {len(payload)}")
        return payload

    return draw


def _counted(
    spec: CollectionSpec, draw: Callable[[int, int], Payload], draws: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count how often each value gave each output, `(k, outputs)`, in each half of the draws."""
    halves = [
        [_tally(draw, value, number) for value in range(spec.mechanism.size)]
        for number in (draws // 2, draws - draws // 2)
    ]
    outputs = sorted({output for half in halves for tally in half for output in tally})
    first, second = (
        np.array([[tally.get(output, 0) for output in outputs] for tally in half])
        for half in halves
    )
    return first, second


def _tally(draw: Callable[[int, int], Payload], value: int, number: int) -> dict[bytes, int]:
    tally: dict[bytes, int] = {}
    for size in _parts(number):
        outputs, counts = np.unique(draw(value, size), axis=0, return_counts=True)
        for output, count in zip(outputs, counts.tolist(), strict=True):
            key = output.tobytes()
            tally[key] = tally.get(key, 0) + count
    return tally


def _parts(number: int) -> Iterator[int]:
    while number > 0:
        yield min(number, _AT_ONCE)
        number -= _AT_ONCE


def _document(
    collection: CollectionConfig, bounds: NDArray[np.float64], draws: int
) -> dict[str, Json]:
    spec = collection.spec
    pairs: list[tuple[float, dict[str, Json]]] = []
    for value, other in zip(*np.nonzero(bounds >= 0.0), strict=True):
        budget = spec.mechanism.policy.entry(int(value), int(other))
        if value != other and budget is not None:
            low, allowed = float(bounds[value, other]), float_above(budget)
            row: dict[str, Json] = {
                "value": spec.domain.label(int(value)),
                "other": spec.domain.label(int(other)),
                "budget": allowed,
                "loss_at_least": low,
            }
            pairs.append((low - allowed, row))
    pairs.sort(key=lambda pair: -pair[0])
    beyond: list[Json] = [row for excess, row in pairs if excess > 0.0]
    return {
        "collection": collection.name,
        "fingerprint": spec.fingerprint.hex(),
        "draws": draws,
        "significance": _SIGNIFICANCE,
        "pairs": len(pairs),
        "nearest": pairs[0][1] if pairs else None,
        "beyond": beyond,
        "pass": not beyond,
    }
