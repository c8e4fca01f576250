"""Linear counting under any policy: the rows of a strategy with noise ([ML] Section III).

A report is the value's column of the strategy A. Each row gets two-sided geometric noise and is
clamped to a range that it almost never leaves. The paper adds continuous Laplace noise, which leaks
through the rounding of floats; for integer rows the discrete noise needs the same condition on the
scales and is slightly smaller (docs/theory.md section 4).

The keys of a collection:

- `strategy`: "prefix", "haar", "hierarchical" or "identity"; "best", for the best of these for a
  `workload` ("values", "prefixes" or "ranges"); or `{ file = "strategy.csv" }`.
- `policy`: any form of policy; by default epsilon for each index step (ordered domains) or between
  any two values (labels).
- `scales`: a list of numbers, or `{ file = "scales.csv" }`; by default the same for all rows.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Floats
from ldpstream.mechanisms.base.checks import check_keys, describe, read_rows
from ldpstream.mechanisms.base.errors import SpecError, within
from ldpstream.mechanisms.base.lazy import locked_cached_property
from ldpstream.mechanisms.base.numbers import read_number, trimmed
from ldpstream.mechanisms.channels.certificate import (
    ENUMERATION_LIMIT,
    Certificate,
    certify_by_enumeration,
    certify_by_structure,
)
from ldpstream.mechanisms.channels.channel import Channel
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.exact.entropy import Entropy
from ldpstream.mechanisms.families.matrix.decoder import MatrixDecoder
from ldpstream.mechanisms.families.matrix.noise import (
    LaplaceRows,
    RealisedRows,
    RowCodec,
    channel_of_rows,
    disclosed_pair,
    realise,
    refuse_many,
    worst_ratios,
)
from ldpstream.mechanisms.families.matrix.pairs import ProtectedPairs
from ldpstream.mechanisms.families.matrix.strategy import (
    MAX_VALUES,
    STRATEGIES,
    WORKLOADS,
    Strategy,
    read_strategy,
    strategy_tables,
)
from ldpstream.mechanisms.interface.mechanism import (
    Json,
    Mechanism,
    Reports,
    Statistic,
)
from ldpstream.mechanisms.interface.settings import Settings
from ldpstream.mechanisms.policies.policy import BlockPolicy, Policy

_MAX_STATISTIC = 1 << 24
_TIE: Final = 1e-6

MAX_COMPARED = 512
"""Largest domain for which a device compares strategies itself."""
_TREES = frozenset(STRATEGIES) - {"identity"}
_NO_LINE = "the others need an ordered domain of one dimension"


@dataclass(frozen=True)
class Matrix(Mechanism):
    """The matrix mechanism: the rows of a strategy with noise that keeps the policy `target`.

    `scales` holds the scale s_j of the noise of each row; by default all rows share the smallest
    one that keeps the policy. Constant rows carry no information and are left out. Rows that
    distinguish only values that the policy does not protect are exact: a report discloses the group
    of values on which they agree. Rows of a file may be of low rank: then they answer only the
    queries in their span (`EstimableQueries`).

    Raises:
        SpecError: if the policy has another number of values, protects nothing, or has a budget of
            0 between values that the strategy distinguishes; if scales violate the policy, or
            the noise could exceed 2^30.
    """

    id: ClassVar[str] = "matrix"
    partial: ClassVar[bool] = True
    target: Policy
    strategy: Strategy
    scales: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if self.target.size != self.strategy.size:
            expected = f"one of {self.strategy.size} values, got {self.target.size}"
            raise SpecError("policy", expected)
        if self.statistic_size > _MAX_STATISTIC:
            raise SpecError("policy", f"fewer groups than {self._groups} with this many rows")

    @classmethod
    def configure(cls, settings: Settings) -> Self:
        settings.only(cls.id, "epsilon", "policy", "strategy", "workload", "scales")
        size = settings.domain.size
        if size > MAX_VALUES:
            raise SpecError(f"{settings.path}.domain", f"at most {MAX_VALUES} values, got {size}")
        workload, policy = _read_workload(settings), _read_policy(settings)
        strategies, scales = _read_strategies(settings), _read_scales(settings)
        with within(settings.path):
            candidates = [cls(policy, strategy, scales) for strategy in strategies]
        if len(candidates) == 1:
            return candidates[0]
        decoders = [candidate.decoder for candidate in candidates]
        return candidates[_least_error(decoders, workload, size=size)]

    @property
    def size(self) -> int:
        return self.strategy.size

    @property
    def policy(self) -> Policy:
        return self.target

    @cached_property
    def pairs(self) -> ProtectedPairs:
        """The pairs of values that decide whether the policy is kept."""
        return ProtectedPairs.of(self.target)

    @cached_property
    def _realised(self) -> RealisedRows:
        return realise(self.strategy, self.pairs, self.scales)

    @property
    def rows(self) -> LaplaceRows:
        """The noisy rows as realised."""
        return self._realised.noisy

    @property
    def _groups(self) -> int:
        return self._realised.groups

    @cached_property
    def _codec(self) -> RowCodec:
        """The encoding of a report's numbers: the group if there are several, then the rows."""
        ends = np.array([[0], [self._groups - 1]] if self._groups > 1 else [[], []], dtype=np.int64)
        low, high = np.concatenate([ends, np.stack([self.rows.low, self.rows.high])], axis=1)
        return RowCodec(low, high)

    @property
    def report_bytes(self) -> int:
        """Length of a report, with each number in the fewest bytes that hold its range."""
        return self._codec.bytes

    @property
    def statistic_size(self) -> int:
        """Length of the statistic: for each group the sums of the noisy rows and a report count."""
        return self._groups * (self.rows.count + 1)

    def parameters(self) -> Mapping[str, Json]:
        rows = self.rows
        description: dict[str, Json] = {"name": self.strategy.name}
        if self.strategy.name not in STRATEGIES:
            description |= {"rows": self.strategy.rows, "sha256": self.strategy.digest}
        thresholds: list[Json] = [hex(t) for t in rows.thresholds]
        reaches: list[Json] = list(rows.reaches)
        policy = {key: entry for key, entry in self.target.describe().items() if key != "guarantee"}
        out: dict[str, Json] = {
            "policy": policy,
            "strategy": description,
            "thresholds": thresholds,
            "reaches": reaches,
            "groups": self._groups,
        }
        if self.scales is not None:
            out["scales"] = [float(scale) for scale in self.scales]
        return out

    def tables(self) -> Mapping[str, Json]:
        return self.target.tables() | strategy_tables(self.strategy)

    def channel(self) -> Channel:
        return channel_of_rows(self.rows, self._realised.group, self._groups)

    def possible_reports(self) -> Reports:
        """Return every report: for each group, all combinations of the rows' ranges."""
        refuse_many(self.rows, self.size, self._groups)
        ends = zip(self._codec.low.tolist(), self._codec.high.tolist(), strict=True)
        return np.array(
            list(product(*(range(low, high + 1) for low, high in ends))), dtype=np.int64
        )

    def certify(self) -> Certificate:
        """Prove the realised loss: by enumeration if the channel is small, else by structure.

        By structure: see `worst_ratios`. Only the policy's pairs are compared, which suffices.
        """
        if self.size <= ENUMERATION_LIMIT:
            try:
                channel = self.channel()
            except ValueError:
                pass
            else:
                return certify_by_enumeration(self.id, self.target, channel, self.disclosed())
        ratios = worst_ratios(self.rows, self.pairs)
        return certify_by_structure(
            self.id,
            self.target,
            ratios,
            self.disclosed(),
            violation=disclosed_pair(self._realised.group, self.pairs),
        )

    def randomise(self, values: NDArray[np.int64], entropy: Entropy) -> Reports:
        """Randomise values, int64 of shape `(n,)` in `0..k-1`, into reports, int64 `(n, width)`.

        The group comes first if there are several, then the noisy rows.
        """
        noisy = self.rows.privatize(values, entropy)
        if self._groups == 1:
            return noisy
        return np.concatenate([self._realised.group[values][:, None], noisy], axis=1)

    def encode(self, reports: Reports) -> NDArray[np.uint8]:
        return self._codec.encode(reports)

    def decode(self, payload: NDArray[np.uint8]) -> tuple[Reports, NDArray[np.bool_]]:
        """Decode uint8 of shape `(n, report_bytes)`; rows outside the ranges are marked False."""
        return self._codec.decode(payload)

    def accumulate(self, statistic: Statistic, reports: Reports) -> None:
        """Add n reports to the sums and counts of their groups, in place."""
        table = statistic.reshape(self._groups, -1)
        if self._groups == 1:
            table[0, :-1] += reports.sum(axis=0, dtype=np.int64)
            table[0, -1] += len(reports)
            return
        np.add.at(table[:, :-1], reports[:, 0], reports[:, 1:])
        table[:, -1] += np.bincount(reports[:, 0], minlength=self._groups)

    def unanswered(self, weights: Floats | None) -> tuple[int, int] | None:
        if self.strategy.name in STRATEGIES or self.decoder.complete:
            return None
        singly = np.eye(self.size) if weights is None else weights[None]
        pairs = (self.decoder.unanswered(row) for row in singly)
        return next((pair for pair in pairs if pair is not None), None)

    @locked_cached_property
    def decoder(self) -> MatrixDecoder:
        return MatrixDecoder(self.rows, self._realised.group, self._groups)

    def disclosed(self) -> list[str]:
        if self._groups == 1:
            return []
        return [f"which of {self._groups} groups the value is in: the policy does not hide it"]


def _least_error(decoders: Sequence[MatrixDecoder], workload: str, *, size: int) -> int:
    """Return the place of the decoder with the least predicted error for a workload.

    `size` is the number of values. The chosen strategy is part of the fingerprint, so that rounding
    must not decide: of decoders whose errors agree to 1e-6 it is the first.
    """
    gram = WORKLOADS[workload](size)
    best, least = 0, decoders[0].total_error(gram)
    for place, decoder in enumerate(decoders):
        error = decoder.total_error(gram)
        if error < least * (1.0 - _TIE):
            best, least = place, error
    return best


def _read_workload(settings: Settings) -> str:
    """Return the workload that "best" is chosen for."""
    workload = settings.keys.get("workload", "values")
    if not isinstance(workload, str) or workload not in WORKLOADS:
        expected = f"one of {', '.join(WORKLOADS)}, got {describe(workload)}"
        raise SpecError(f"{settings.path}.workload", expected)
    if workload != "values" and not _is_line(settings):
        raise SpecError(f"{settings.path}.workload", f'"values", as {_NO_LINE}')
    return workload


def _is_line(settings: Settings) -> bool:
    domain = settings.domain
    return domain.ordered and sum(extent > 1 for extent in domain.shape) <= 1


def _read_policy(settings: Settings) -> Policy:
    if "policy" in settings.keys:
        return settings.read_policy()
    if not settings.domain.ordered:
        return BlockPolicy(settings.read_epsilon(), Blocks.one(settings.domain.size))
    return replace(settings, keys={**settings.keys, "policy": {"metric": "l1"}}).read_policy()


def _read_strategies(settings: Settings) -> tuple[Strategy, ...]:
    raw, path = settings.keys.get("strategy"), f"{settings.path}.strategy"
    size = settings.domain.size
    if isinstance(raw, dict):
        table = check_keys(raw, frozenset({"file"}), path)
        try:
            return (read_strategy(table.get("file"), settings.base, size=size),)
        except SpecError as error:
            inside = path if error.path.startswith("file") else settings.path
            raise SpecError(f"{inside}.{error.path}", error.expected) from None
    if raw != "best" and (not isinstance(raw, str) or raw not in STRATEGIES):
        names = ", ".join([*STRATEGIES, "best"])
        raise SpecError(path, f'one of {names}, or {{ file = "..." }}, got {describe(raw)}')
    suited = [name for name in STRATEGIES if _is_line(settings) or name not in _TREES]
    if raw != "best":
        if raw not in suited:
            raise SpecError(path, f"identity, best or a file, as {_NO_LINE}")
        return (Strategy.built_in(raw, size),)
    if "scales" in settings.keys:
        raise SpecError(path, "one strategy by its name or a file with scales, got 'best'")
    if size > MAX_COMPARED:
        raise SpecError(
            path, f"one of {', '.join(suited)} with more than {MAX_COMPARED} values, got 'best'"
        )
    return tuple(Strategy.built_in(name, size) for name in suited)


def _read_scales(settings: Settings) -> tuple[float, ...] | None:
    raw, path = settings.keys.get("scales"), f"{settings.path}.scales"
    if raw is None:
        return None
    if isinstance(raw, dict):
        table = check_keys(raw, frozenset({"file"}), path)
        with within(path):
            rows = list(read_rows(table.get("file"), settings.base))
        return tuple(_read_text(row, f"{path}.{where}") for where, row in rows)
    if not isinstance(raw, list):
        raise SpecError(path, f'a list of numbers, or {{ file = "..." }}, got {describe(raw)}')
    return tuple(_read_scale(scale, f"{path}[{place}]") for place, scale in enumerate(raw))


def _read_text(row: list[str], path: str) -> float:
    try:
        (text,) = row
        return _read_scale(read_number(trimmed(text)), path)
    except ValueError as error:
        if isinstance(error, SpecError):
            raise
        raise SpecError(path, "one finite number of at least 0") from None


def _read_scale(scale: object, path: str) -> float:
    if isinstance(scale, bool) or not isinstance(scale, int | float):
        raise SpecError(path, f"a finite number of at least 0, got {describe(scale)}")
    if not 0 <= scale < 2**63 or math.isnan(scale):
        raise SpecError(path, f"a finite number of at least 0, got {describe(scale)}")
    return float(scale)
