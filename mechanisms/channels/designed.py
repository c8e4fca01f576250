"""Channels given as a table of multiples of 2^-64 with the policy that they keep, and their files.

Devices and servers load the same file. It is JSON with the keys `version`, `policy` (exact),
`prior`, `weights` (hexadecimal numerators over 2^64, a row for each value), `sha256` (of policy,
prior and weights in canonical JSON) and `design`, the record of how the channel was designed.

A policy is stated as exact JSON: as a matrix, a graph or a prior.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np

from ldpstream.mechanisms.base.arrays import Floats
from ldpstream.mechanisms.base.canonical import Json, canonical_json
from ldpstream.mechanisms.base.checks import check_keys, describe, is_whole, read_epsilon
from ldpstream.mechanisms.base.errors import SpecError, within
from ldpstream.mechanisms.base.files import replaced_file
from ldpstream.mechanisms.channels.certificate import (
    Certificate,
    certify_by_enumeration,
    certify_by_structure,
)
from ldpstream.mechanisms.channels.channel import Channel
from ldpstream.mechanisms.exact.dyadic import exp_floor, log_estimate
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.policies.graph import GraphPolicy
from ldpstream.mechanisms.policies.matrix import MatrixPolicy
from ldpstream.mechanisms.policies.policy import Policy
from ldpstream.mechanisms.policies.prior import PriorPolicy

_MAX_OUTPUTS = 1 << 16
"""Largest number of reports that a table may have."""
_VERSION: Final = 1
_KEYS: Final = frozenset({"version", "policy", "prior", "weights", "sha256", "design"})
_MOST_BYTES: Final = 64 << 20

MAX_MATRIX_VALUES = 64
_MAX_GRAPH_VALUES = 256
_MAX_LIP_VALUES = 512
_MOST_VALUES: Final[Mapping[type[Policy], int]] = {
    PriorPolicy: _MAX_LIP_VALUES,
    MatrixPolicy: MAX_MATRIX_VALUES,
}
"""The most values of policies that files hold as they are."""
_FRACTION = re.compile(r"[0-9]+(/[0-9]*[1-9][0-9]*)?")


@dataclass(frozen=True)
class DesignedChannel:
    """A channel as a table of integers, and the prior that it was designed for.

    `weights[x][y]` is `P(y | x)` in units of 1/total; `prior` holds k shares. `total` is 2^64,
    except for the permanent draws that reports of such a channel can follow from. `record` says how
    the channel was designed (workload, predicted variance, gap) and has no effect. Channels are
    equal if their contents are.

    Raises:
        SpecError: if there is not one row for each value of the policy, a row holds a negative
            entry or does not sum to the total, no value can produce some output, the prior is not
            a distribution above 0, or different distributions of values give the same reports.
    """

    policy: Policy
    weights: tuple[tuple[int, ...], ...]
    prior: tuple[float, ...]
    record: Mapping[str, Json] = field(default_factory=dict, compare=False)
    total: int = WORD

    def __post_init__(self) -> None:
        size = self.policy.size
        if len(self.weights) != size:
            raise SpecError("weights", f"{size} rows, one for each value, got {len(self.weights)}")
        if not 1 <= self.outputs <= _MAX_OUTPUTS:
            raise SpecError("weights", f"1..{_MAX_OUTPUTS} reports, got {self.outputs}")
        for value, row in enumerate(self.weights):
            if len(row) != self.outputs:
                raise SpecError(f"weights[{value}]", f"{self.outputs} entries, got {len(row)}")
            if not all(is_whole(weight) and weight >= 0 for weight in row):
                raise SpecError(f"weights[{value}]", "whole numbers of at least 0")
            if sum(row) != self.total:
                share = float(Fraction(sum(row), self.total))
                raise SpecError(f"weights[{value}]", f"a sum of 2^64, got {share:.17g} of it")
        if not all(any(column) for column in zip(*self.weights, strict=True)):
            raise SpecError("weights", "reports that some value can make, got a column of zeros")
        self._check_prior()
        if np.linalg.matrix_rank(self.whitened) < size:
            raise SpecError("weights", "an invertible channel, got linearly dependent rows")

    def _check_prior(self) -> None:
        shares = np.array(self.prior, dtype=np.float64)
        whole = shares.shape == (self.policy.size,) and abs(float(shares.sum()) - 1.0) < 1e-9
        if not whole or not (shares > 0.0).all():
            raise SpecError("prior", f"{self.policy.size} numbers above 0 with sum 1")
        if not (self.probabilities > 0.0).all():
            raise SpecError("prior", "shares large enough to give every report a probability")

    @property
    def outputs(self) -> int:
        """Number of reports."""
        return len(self.weights[0]) if self.weights else 0

    @cached_property
    def matrix(self) -> Floats:
        """The channel `Q`, each entry correctly rounded: float64 `(k, outputs)`."""
        return np.array(self.weights, dtype=np.float64) / self.total

    @cached_property
    def probabilities(self) -> Floats:
        """`P(y)` if the design prior holds: float64 `(outputs,)`."""
        shares: Floats = np.array(self.prior) @ self.matrix
        return shares

    @cached_property
    def whitened(self) -> Floats:
        """`Q / sqrt(P(y))`; its squared singular values are those of the information matrix I."""
        out: Floats = self.matrix / np.sqrt(self.probabilities)
        return out

    @cached_property
    def channel(self) -> Channel:
        """The channel in exact rationals."""
        return Channel(
            tuple(
                {y: Fraction(weight, self.total) for y, weight in enumerate(row) if weight}
                for row in self.weights
            ),
            self.outputs,
        )

    def certify(self, mechanism: str, disclosed: list[str]) -> Certificate:
        """Return a certificate that proves or refutes the policy at every output, exactly."""
        if isinstance(self.policy, PriorPolicy):
            return certify_prior(mechanism, self.policy, self.weights, disclosed)
        return certify_by_enumeration(mechanism, self.policy, self.channel, disclosed)

    @cached_property
    def digest(self) -> str:
        """SHA-256, in hex, of policy, prior and weights: devices and servers must agree on it."""
        return hashlib.sha256(canonical_json(self.content())).hexdigest()

    def content(self) -> dict[str, Json]:
        """Return policy, prior and weights as JSON, exactly."""
        return {
            "policy": self.policy.document(),
            "prior": list(self.prior),
            "weights": [[hex(weight) for weight in row] for row in self.weights],
        }


def certify_prior(
    mechanism: str,
    policy: PriorPolicy,
    weights: Sequence[Sequence[int]],
    disclosed: list[str],
) -> Certificate:
    """Prove or refute `e^-eps <= P(x | y) / prior[x] <= e^eps` at every value and report, exactly.

    `weights[x][y]` is proportional to `P(y | x)`. The certificate names the largest violation.
    """
    worst, violation = Fraction(1), None
    for output, column in enumerate(zip(*weights, strict=True)):
        ratio, value = policy.worst_ratio(column)
        if ratio is None:
            violation = f"value {value} at output {output}, which it cannot produce"
            break
        if ratio > worst:
            worst = ratio
            if ratio > exp_floor(policy.budget):
                violation = (
                    f"value {value} at output {output}: loss {log_estimate(ratio):.6g} "
                    f"above the budget {policy.epsilon:.6g}"
                )
    return certify_by_structure(
        mechanism,
        policy,
        {policy.budget: worst},
        disclosed,
        violation=violation,
        proof="enumeration",
    )


def channel_document(channel: DesignedChannel) -> dict[str, Json]:
    """Return the JSON document of a channel file."""
    return {
        "version": _VERSION,
        "design": dict(channel.record),
        "sha256": channel.digest,
        **channel.content(),
    }


def save_channel(path: Path, channel: DesignedChannel) -> None:
    """Write a channel file, in place of an older one once it is whole.

    Raises:
        ValueError: if the path is that of a folder or a device.
        OSError: if it cannot be written.
    """
    text = json.dumps(channel_document(channel), allow_nan=False, separators=(",", ":"))
    with replaced_file(path) as file:
        file.write((text.replace("],[", "],\n[") + "\n").encode("ascii"))


def load_channel(raw: object, base: Path) -> DesignedChannel:
    """Return the channel of a file, whose path is relative to the folder `base`.

    The table is checked, but not that it keeps its policy: `DesignedChannel.certify` proves that.

    Raises:
        SpecError: if the file cannot be read, is not of version 1 or was altered, or its table is
            not an invertible channel.
    """
    if not isinstance(raw, str) or not raw:
        raise SpecError("channel", f"the path of a channel file, got {describe(raw)}")
    path = base / raw
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise SpecError("channel", f"a file of at most {_MOST_BYTES} bytes, got {raw!r}")
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SpecError("channel", f"a readable file, got {raw!r}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise SpecError("channel", f"JSON, got {raw!r}: {error}") from error
    with within("channel"):
        return read_channel(document)


def read_channel(document: object) -> DesignedChannel:
    """Return the channel of a channel file's document."""
    table = check_keys(document, _KEYS, "file")
    if table.get("version") != _VERSION:
        raise SpecError("version", f"{_VERSION}, got {describe(table.get('version'))}")
    prior, record = table.get("prior"), table.get("design", {})
    if not isinstance(prior, list) or not all(map(_is_share, prior)):
        raise SpecError("prior", f"a list of numbers in 0..1, got {describe(prior)}")
    if not isinstance(record, dict):
        raise SpecError("design", f"a table, got {describe(record)}")
    channel = DesignedChannel(
        policy=read_policy_document(table.get("policy")),
        weights=tuple(_row(row, place) for place, row in enumerate(_rows(table.get("weights")))),
        prior=tuple(float(share) for share in prior),
        record=record,
    )
    if table.get("sha256") != channel.digest:
        raise SpecError("sha256", f"{channel.digest}, the hash of the content: it was altered")
    return channel


def _is_share(raw: object) -> bool:
    return isinstance(raw, int | float) and 0 <= raw <= 1


def _rows(raw: object) -> list[object]:
    if not isinstance(raw, list):
        raise SpecError("weights", f"a list of rows, got {describe(raw)}")
    return raw


def _row(raw: object, place: int) -> tuple[int, ...]:
    if isinstance(raw, list) and all(isinstance(w, str) and len(w) <= 19 for w in raw):
        try:
            return tuple(int(weight, 16) for weight in raw)
        except ValueError:
            pass
    raise SpecError(f"weights[{place}]", "a list of hexadecimal numbers")


def tabled(policy: Policy) -> Policy:
    """Return a policy with the same budgets in a form that files hold: matrix, graph or prior.

    A policy that some of its pairs imply (`Policy.pairs`) becomes the graph of these pairs.
    """
    if most := _MOST_VALUES.get(type(policy)):
        return _limit_size(policy, most)
    _limit_size(policy, _MAX_GRAPH_VALUES)
    edges = tuple(sorted(policy.constraints()))
    every = policy.size * (policy.size - 1)
    if len(edges) <= MAX_MATRIX_VALUES**2 and sum(1 for _ in policy.pairs()) < every:
        return GraphPolicy(policy.size, edges, directed=True)
    _limit_size(policy, MAX_MATRIX_VALUES)
    return MatrixPolicy(tuple(map(tuple, policy.listed())))


def read_policy_document(raw: object) -> Policy:
    """Return the policy of a document that `Policy.document` wrote."""
    if not isinstance(raw, Mapping) or raw.get("kind") not in ("lip", "graph", "matrix"):
        raise SpecError("policy", "a table of the kind lip, graph or matrix")
    kind = raw["kind"]
    if kind == "lip":
        return _limit_size(_prior_policy(raw), _MAX_LIP_VALUES)
    if kind == "graph":
        size = raw.get("size")
        if not is_whole(size):
            raise SpecError("policy.size", f"a whole number, got {describe(size)}")
        edges = tuple(_edge(edge) for edge in _list(raw.get("edges"), "edges"))
        return _limit_size(GraphPolicy(size, edges, directed=True), _MAX_GRAPH_VALUES)
    rows = [
        tuple(_fraction(entry, "policy.budgets") for entry in _list(row, "budgets"))
        for row in _list(raw.get("budgets"), "budgets")
    ]
    return _limit_size(MatrixPolicy(tuple(rows)), MAX_MATRIX_VALUES)


def _prior_policy(table: Mapping[str, object]) -> PriorPolicy:
    epsilon = read_epsilon(table.get("epsilon"), "policy.epsilon")
    shares = [_fraction(share, "policy.prior") for share in _list(table.get("prior"), "prior")]
    return PriorPolicy(epsilon, tuple(share or Fraction(0) for share in shares))


def _limit_size(policy: Policy, most: int) -> Policy:
    if policy.size > most:
        raise SpecError("policy", f"at most {most} values of this form, got {policy.size}")
    return policy


def _list(raw: object, key: str) -> list[object]:
    if not isinstance(raw, list):
        raise SpecError(f"policy.{key}", f"a list, got {describe(raw)}")
    return raw


def _edge(raw: object) -> tuple[int, int, Fraction]:
    if isinstance(raw, list) and len(raw) == 3 and is_whole(raw[0]) and is_whole(raw[1]):
        length = _fraction(raw[2], "policy.edges")
        if length is not None:
            return raw[0], raw[1], length
    raise SpecError("policy.edges", f"edges of two values and a budget, got {describe(raw)}")


def _fraction(raw: object, path: str) -> Fraction | None:
    """Return an exact number of at least 0; None for "inf"."""
    if raw == "inf":
        return None
    # No exponents: "1e999999999" would take a billion digits.
    if isinstance(raw, str) and len(raw) <= 1000 and _FRACTION.fullmatch(raw):
        return Fraction(raw)
    raise SpecError(path, f'fractions such as "1/2", got {describe(raw)}')
