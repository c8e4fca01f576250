"""List the windows that have reports, and those that have a stored final.

Overviews and feeds begin here; the answer about one span comes from `ldpstream.agents.state.view`.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from ldpstream.agents.state.context import Context
from ldpstream.agents.state.records import Name
from ldpstream.agents.state.replica import (
    BehindError,
    Replica,
    check_between,
    incomplete_panes,
    reports_by_pane,
)
from ldpstream.agents.state.view import panes_between
from ldpstream.agents.state.windows import (
    NEVER,
    windows_with,
)


@dataclass(frozen=True)
class WindowInfo:
    """A window that has reports, counted or late, or that may have lost all of them.

    `start_ms` and `end_ms` are epoch ms.
    """

    number: int
    start_ms: int
    end_ms: int
    n: int
    late: int
    final: bool
    published: bool


def windows(
    context: Context, replicas: Sequence[Replica], *, first_pane: int = NEVER
) -> list[WindowInfo]:
    """Return all unexpired windows with reports, in order.

    Panes before `first_pane` are left out, also of windows that end after it.
    A window is `final` once partition 0 has decided it, and `published` once that is recorded.
    """
    window = context.window
    counted_here = check_between(replicas, NEVER, -NEVER)
    n_late: dict[int, tuple[int, int]] = {}
    for replica in replicas:
        for pane in replica.panes(first_pane, -NEVER):
            n, late = n_late.get(pane, (0, 0))
            pane_totals = replica.totals(pane)
            more = 0 if replica.partition and pane < counted_here else pane_totals.n
            if more or pane_totals.late:
                n_late[pane] = n + more, late + pane_totals.late
        closed = NEVER if replica.head is None else replica.head.closed
        for pane in incomplete_panes((replica,), first_pane, closed):
            n_late.setdefault(pane, (0, 0))
    panes = sorted(n_late)
    head = replicas[0].head if replicas else None
    final, published = (NEVER, NEVER) if head is None else (head.final, head.published)
    sums_n = [0, *accumulate(n_late[pane][0] for pane in panes)]
    sums_late = [0, *accumulate(n_late[pane][1] for pane in panes)]
    listed, first, end = [], 0, 0
    for number in windows_with(window, panes):
        window_panes = window.panes(number)
        while first < len(panes) and panes[first] < window_panes.start:
            first += 1
        while end < len(panes) and panes[end] < window_panes.stop:
            end += 1
        start_ms, end_ms = window.span(number)
        listed.append(
            WindowInfo(
                number,
                start_ms,
                end_ms,
                sums_n[end] - sums_n[first],
                sums_late[end] - sums_late[first],
                final=number < final,
                published=number < published,
            )
        )
    return listed


def open_windows(context: Context, replicas: Sequence[Replica]) -> int | None:
    """Return how many windows with reports are not published; None while that is not known."""
    if any(replica.head is None for replica in replicas):
        return None
    # What is published need not be counted: a week of short windows takes a while.
    head = replicas[0].head if replicas else None
    published = NEVER if head is None else head.published
    try:
        panes = reports_by_pane(replicas, context.window.first_pane(published), -NEVER)
    except BehindError:
        return None
    return sum(1 for _ in windows_with(context.window, sorted(panes), first=published))


def oldest_window(context: Context, replicas: Sequence[Replica], first: int) -> int | None:
    """Return the oldest window from `first` on that has reports; None without one, or unknown."""
    if any(replica.head is None for replica in replicas):
        return None
    try:
        panes = reports_by_pane(replicas, context.window.first_pane(first), -NEVER)
    except BehindError:
        return None
    return max(context.window.windows(min(panes)).start, first) if panes else None


def stored_finals(context: Context, replica: Replica, after: int) -> list[int]:
    """Return the windows above `after` that have a stored final, in order; NEVER is below all.

    `replica` is that of partition 0, which keeps them.
    """
    window, final = context.window, NEVER if replica.head is None else replica.head.final
    if final == NEVER:
        return []
    first = NEVER if after == NEVER else window.first_pane(after + 1)
    panes = replica.panes(first, window.first_pane(final))
    numbers = (pane // window.hop_panes for pane in panes if pane % window.hop_panes == 0)
    return [number for number in numbers if Name("final", number) in replica.cells]


def told_of(context: Context, replicas: Sequence[Replica], window: WindowInfo) -> Hashable:
    """Return a value that changes whenever the answer about an open window may change."""
    numbers = window.n, window.late
    if context.minimum <= 1:
        return numbers
    panes = panes_between(context, window.start_ms, window.end_ms)
    attributes = range(context.attributes)
    of_each = (
        replicas[0].parts(attribute).touching(panes.start, panes.stop) for attribute in attributes
    )
    groups = tuple(group for groups in of_each for group in groups)
    released = tuple(
        (p, released_pane.n) for p, released_pane in replicas[0].released(panes.start, panes.stop)
    )
    # The number of all reports is disclosed only if there is nothing else to disclose.
    return (groups, released, window.late) if groups or released else numbers
