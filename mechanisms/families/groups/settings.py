"""The keys that give budgets to groups: `epsilon`, `sensitive`, `epsilon_outside`, `epsilon_rest`.

`sensitive` is one list of values with a budget `epsilon` towards all values, or several lists with
a budget each. Without it, the groups are the blocks of the domain, whose budget holds inside.
"""

import math
from collections.abc import Sequence
from typing import Final

from ldpstream.mechanisms.base.checks import describe, read_epsilon
from ldpstream.mechanisms.base.errors import SpecError, within
from ldpstream.mechanisms.families.groups.designs import DEFAULT_SHARE
from ldpstream.mechanisms.interface.settings import Settings
from ldpstream.mechanisms.policies.config import read_sensitive, refuse_rounding
from ldpstream.mechanisms.policies.groups import GroupBudget, GroupPolicy

_MOST_BUDGETS: Final = 100
"""Most budgets in a list."""


def read_groups(settings: Settings, mechanism: str) -> tuple[GroupPolicy, float | None]:
    """Return the policy of a collection's keys, and the share of users that are in lists, if any.

    Raises:
        SpecError: naming the key and what was expected, also of keys that contradict each other.
    """
    keys, path = settings.keys, settings.path
    refuse_rounding(settings.domain, path)
    if settings.blocks is None or "sensitive" in keys:
        settings.only(mechanism, "epsilon", "epsilon_outside", "epsilon_rest", "sensitive", "share")
        return _of_sensitive(settings)
    for key in ("share", "epsilon_rest"):
        if key in keys:
            raise SpecError(
                f"{path}.{key}", "no such key with blocks: it is about sensitive values"
            )
    settings.only(mechanism, "epsilon", "epsilon_outside", "blocks")
    blocks = settings.blocks
    inside = _read_budgets(settings, "epsilon", blocks.count, "block")
    outside: Sequence[float] = [math.inf]
    if "epsilon_outside" in keys:
        outside = _read_budgets(settings, "epsilon_outside", blocks.count, "block")
    if len(inside) == len(outside) == 1:
        budgets = [GroupBudget(inside[0], _at_least(outside, inside, path)[0], blocks.count)]
    else:
        inside, outside = _spread(inside, blocks.count), _spread(outside, blocks.count)
        pairs = zip(inside, _at_least(outside, inside, path), strict=True)
        budgets = [GroupBudget(*pair) for pair in pairs]
    with within(path):
        return GroupPolicy(blocks, tuple(budgets)), None


def _of_sensitive(settings: Settings) -> tuple[GroupPolicy, float | None]:
    keys, path, domain = settings.keys, settings.path, settings.domain
    key = f"{path}.sensitive"
    lists_or_values = keys.get("sensitive")
    several = _are_lists(lists_or_values, levels=min(2, len(domain.shape)))
    lists = lists_or_values if isinstance(lists_or_values, list) and several else [lists_or_values]
    names = [f"{key}[{i}]" if several else key for i in range(len(lists))]
    groups = [read_sensitive(entry, domain, name) for entry, name in zip(lists, names, strict=True)]
    values = sum(map(len, groups))
    if len(frozenset[int]().union(*groups)) < values:
        raise SpecError(key, "each value in one list")
    inside = _read_budgets(settings, "epsilon", len(groups), "list of sensitive values")
    inside = outside = _spread(inside, len(groups))
    if "epsilon_outside" in keys:
        outside = _read_budgets(
            settings, "epsilon_outside", len(groups), "list of sensitive values"
        )
        outside = _spread(outside, len(groups))
    elif several and len(set(inside)) < len(groups):
        raise SpecError(key, "one list of all values with the same epsilon")
    pairs = zip(inside, _at_least(outside, inside, path), strict=True)
    budgets = [GroupBudget(*pair) for pair in pairs]
    if "epsilon_rest" in keys:
        rest = read_epsilon(keys["epsilon_rest"], f"{path}.epsilon_rest")
        if values == domain.size:
            raise SpecError(f"{path}.epsilon_rest", "no such key if all values are sensitive")
        if "share" in keys:
            what = "no such key with epsilon_rest, where all values are taken to be as frequent"
            raise SpecError(f"{path}.share", what)
        budgets.append(GroupBudget(rest, rest))
    share = _read_share(keys.get("share", DEFAULT_SHARE), f"{path}.share")
    every = len(budgets) > len(groups) or values == domain.size
    with within(path):
        grouped = GroupPolicy.of_sensitive(domain.size, groups, budgets)
    return grouped, None if every else share


def _are_lists(raw: object, *, levels: int) -> bool:
    """Return whether these are lists of labels, which are lists themselves on several axes."""
    if not isinstance(raw, list) or not raw:
        return False
    return levels == 0 or all(_are_lists(entry, levels=levels - 1) for entry in raw)


def _read_budgets(settings: Settings, key: str, groups: int, each: str) -> Sequence[float]:
    """Return one budget, or one for each group; those towards other groups may be infinite."""
    raw, path = settings.keys.get(key), f"{settings.path}.{key}"
    infinite = key == "epsilon_outside"
    if not isinstance(raw, list):
        return [read_epsilon(raw, path, infinite=infinite)]
    if groups == 1:
        raise SpecError(path, f"one number with one {each}, got {describe(raw)}")
    if len(raw) != groups or groups > _MOST_BUDGETS:
        most = f", of which there may be {_MOST_BUDGETS}" if groups > _MOST_BUDGETS else ""
        of = f" ({settings.domain.size:,} values in {groups:,})" if each == "block" else ""
        what = f"a number, or {groups:,} of them, one for each {each}{of}{most}, got {len(raw):,}"
        raise SpecError(path, what)
    budgets = enumerate(raw)
    return [read_epsilon(budget, f"{path}[{i}]", infinite=infinite) for i, budget in budgets]


def _spread(budgets: Sequence[float], groups: int) -> Sequence[float]:
    """Return a budget for each group, of one for all or for each."""
    return [*budgets] * groups if len(budgets) == 1 else budgets


def _at_least(outside: Sequence[float], inside: Sequence[float], path: str) -> Sequence[float]:
    for place, (budget, least) in enumerate(zip(outside, inside, strict=True)):
        if budget < least:
            at = f"[{place}]" if len(outside) > 1 else ""
            what = f"at least epsilon, which is {least:g} inside the group, got {budget:g}"
            raise SpecError(f"{path}.epsilon_outside{at}", what)
    return outside


def _read_share(raw: object, path: str) -> float:
    if isinstance(raw, bool) or not isinstance(raw, int | float) or not 0 <= raw <= 1:
        raise SpecError(
            path, f"the share of users with a sensitive value, 0 to 1, got {describe(raw)}"
        )
    return float(raw)
