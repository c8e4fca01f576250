"""The keys of a collection with mechanism `matrix`.

- `strategy`: "prefix", "haar", "hierarchical" or "identity"; "best", for the best of these for a
  `workload` ("values", "prefixes" or "ranges"); or `{ file = "strategy.csv" }`.
- `policy`: any form of policy; by default epsilon for each index step (ordered domains) or between
  any two values (labels).
- `scales`: a list of numbers, or `{ file = "scales.csv" }`; by default the same for all rows.
"""

import math
from dataclasses import dataclass

from ldpstream.mechanisms.base.checks import check_keys, describe, read_rows
from ldpstream.mechanisms.base.errors import SpecError, within
from ldpstream.mechanisms.base.numbers import read_number, trimmed
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.families.matrix.strategy import (
    MAX_VALUES,
    STRATEGIES,
    WORKLOADS,
    Strategy,
    read_strategy,
)
from ldpstream.mechanisms.interface.settings import Settings
from ldpstream.mechanisms.policies.config import read_policy
from ldpstream.mechanisms.policies.policy import BlockPolicy, Policy

MAX_COMPARED = 512
"""Largest domain for which a device compares strategies itself."""
_TREES = frozenset(STRATEGIES) - {"identity"}
_NO_LINE = "the others need an ordered domain of one dimension"


@dataclass(frozen=True)
class MatrixSettings:
    """The parsed keys; `strategies` are the candidates to choose from for the workload."""

    policy: Policy
    strategies: tuple[Strategy, ...]
    workload: str
    scales: tuple[float, ...] | None


def read_matrix_settings(settings: Settings) -> MatrixSettings:
    """Return the keys of a `matrix` collection.

    Raises:
        SpecError: naming the first invalid key and what was expected.
    """
    size = settings.domain.size
    if size > MAX_VALUES:
        raise SpecError(f"{settings.path}.domain", f"at most {MAX_VALUES} values, got {size}")
    workload = settings.keys.get("workload", "values")
    if not isinstance(workload, str) or workload not in WORKLOADS:
        expected = f"one of {', '.join(WORKLOADS)}, got {describe(workload)}"
        raise SpecError(f"{settings.path}.workload", expected)
    if workload != "values" and not _is_line(settings):
        raise SpecError(f"{settings.path}.workload", f'"values", as {_NO_LINE}')
    return MatrixSettings(
        policy=_read_policy(settings),
        strategies=_read_strategies(settings),
        workload=workload,
        scales=_read_scales(settings),
    )


def _is_line(settings: Settings) -> bool:
    domain = settings.domain
    return domain.ordered and sum(extent > 1 for extent in domain.shape) <= 1


def _read_policy(settings: Settings) -> Policy:
    if "policy" in settings.keys:
        return settings.read_policy()
    if not settings.domain.ordered:
        return BlockPolicy(settings.read_epsilon(), Blocks.one(settings.domain.size))
    return read_policy(
        {"metric": "l1"},
        domain=settings.domain,
        epsilon=settings.keys.get("epsilon"),
        base=settings.base,
        path=settings.path,
    )


def _read_strategies(settings: Settings) -> tuple[Strategy, ...]:
    given, path = settings.keys.get("strategy"), f"{settings.path}.strategy"
    size = settings.domain.size
    if isinstance(given, dict):
        table = check_keys(given, frozenset({"file"}), path)
        try:
            return (read_strategy(table.get("file"), settings.base, size=size),)
        except SpecError as error:
            inside = path if error.path.startswith("file") else settings.path
            raise SpecError(f"{inside}.{error.path}", error.expected) from None
    if given != "best" and (not isinstance(given, str) or given not in STRATEGIES):
        names = ", ".join([*STRATEGIES, "best"])
        raise SpecError(path, f'one of {names}, or {{ file = "..." }}, got {describe(given)}')
    suited = [name for name in STRATEGIES if _is_line(settings) or name not in _TREES]
    if given != "best":
        if given not in suited:
            raise SpecError(path, f"identity, best or a file, as {_NO_LINE}")
        return (Strategy.built_in(given, size),)
    if "scales" in settings.keys:
        raise SpecError(path, "one strategy by its name or a file with scales, got 'best'")
    if size > MAX_COMPARED:
        raise SpecError(
            path, f"one of {', '.join(suited)} with more than {MAX_COMPARED} values, got 'best'"
        )
    return tuple(Strategy.built_in(name, size) for name in suited)


def _read_scales(settings: Settings) -> tuple[float, ...] | None:
    given, path = settings.keys.get("scales"), f"{settings.path}.scales"
    if given is None:
        return None
    if isinstance(given, dict):
        table = check_keys(given, frozenset({"file"}), path)
        with within(path):
            rows = list(read_rows(table.get("file"), settings.base))
        return tuple(_read_text(row, f"{path}.{where}") for where, row in rows)
    if not isinstance(given, list):
        raise SpecError(path, f'a list of numbers, or {{ file = "..." }}, got {describe(given)}')
    return tuple(_read_scale(scale, f"{path}[{place}]") for place, scale in enumerate(given))


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
