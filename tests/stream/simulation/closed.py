"""The ninth invariant: a closed pane is stored once, and every answer about it is the ledger's.

Partition 0 has the counts of all partitions in the panes that it has gathered, and no other
partition has any. Every reader, however far behind, answers for a closed pane what the ledger says,
or refuses to answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from ldpstream.agents.state.listing import windows
from ldpstream.agents.state.records import Head
from ldpstream.agents.state.replica import BehindError, Replica
from ldpstream.agents.state.view import totals
from tests.stream.simulation.setting import demand

if TYPE_CHECKING:
    from tests.stream.simulation.checks import Checks

Counted = Mapping[tuple[int, int], int]
"""The number of reports by pane and symbol."""


def check_counts(checks: Checks, p: int, head: Head, got: Counted) -> None:
    """Compare the counts of a partition with the ledger."""
    first = max(head.expired, head.gathered)
    want = {key: n for key, n in checks.counts[p].items() if key[0] >= first}
    demand({k: n for k, n in got.items() if k[0] >= head.gathered} == want, "(1) not the ledger's")
    gathered = Counter({key: n for key, n in got.items() if key[0] < head.gathered})
    demand(p == 0 or not gathered, "(9) a partition still has what it has handed over")
    if p == 0:
        everything = sum(checks.counts, Counter())
        demand(gathered <= everything, "(9) gathered more than the ledger has")
        # Panes that a partition dropped before they were gathered may be missing.
        first = max(official.expired for official in checks.world.official)
        want = {key: n for key, n in everything.items() if first <= key[0] < head.gathered}
        kept = {key: n for key, n in gathered.items() if key[0] >= first}
        demand(kept == want, f"(9) gathered {kept}, ledger {want}")


def check_answers(checks: Checks, replicas: Sequence[Replica]) -> None:
    """Ask about every pane that all replicas show as closed, and for the windows of such panes."""
    heads = [replica.head for replica in replicas if replica.head is not None]
    if len(heads) < len(replicas):
        return
    first, end = max(head.expired for head in heads), min(head.closed for head in heads)
    everything = sum(checks.counts, Counter())
    n = Counter[int]()
    for (pane, _), counted in everything.items():
        n[pane] += counted if first <= pane < end else 0
    with suppress(BehindError):
        for pane in +n:
            _check_pane(checks, replicas, pane, everything)
        _check_windows(checks, replicas, n, range(first, end))


def _check_pane(
    checks: Checks, replicas: Sequence[Replica], pane: int, everything: Counted
) -> None:
    # The counts before small blocks are merged.
    context = replace(checks.world.context, minimum_block=1)
    start = context.window.start
    told = totals(context, replicas, start(pane), start(pane + 1))
    want = [everything.get((pane, s), 0) for s in range(len(told.statistic))]
    got = told.statistic.tolist()
    demand(got == want, f"(9) closed pane {pane}: answered {got}, ledger {want}")
    demand(told.n == sum(want), "(9) n is not the answer's")


def _check_windows(
    checks: Checks, replicas: Sequence[Replica], n: Mapping[int, int], closed: range
) -> None:
    context = checks.world.context
    window = context.window
    listed = {told.number: told.n for told in windows(context, replicas)}
    for number in {number for pane in n for number in window.windows(pane)}:
        panes = window.panes(number)
        if closed.start <= panes.start and panes.stop <= closed.stop:
            want = sum(n[pane] for pane in panes if pane in n)
            told = listed.get(number, 0)
            demand(told == want, f"(9) window {number}: listed {told}, ledger {want}")
