"""Move an owner's head past messages that the source's retention deleted before they were read.

All panes to which the lost messages may have belonged are marked: those not closed yet, up to the
latest time that the broker may have accepted by now (allowing for this clock being behind the
broker's), or up to the arrival of the next message.
"""

from dataclasses import replace

import numpy as np

from ldpstream.agents.partition.arrival import Arrivals
from ldpstream.agents.partition.cutover import Decided
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.gaps import Gap, add_gap, end_gap
from ldpstream.agents.state.records import Head
from ldpstream.agents.state.skew import skew_limit_ms


def skipped(
    context: Context, work: Head, offset: int, decided: Decided, *, now_ms: int
) -> tuple[Head, int]:
    """Return the head that continues at an offset of at least `next`, and how many are lost.

    Messages before those that this state `decided` belong to another state.
    """
    lost = max(0, offset - max(work.next, decided.first))
    if not lost:
        return (replace(work, next=offset) if offset > work.next else work), 0
    window = context.window
    latest_ms = now_ms + skew_limit_ms(window.grace_ms) + window.future_ms
    gap = Gap(work.closed, max(work.closed, window.pane(latest_ms)), lost)
    gaps = add_gap(work.gaps, gap)
    return replace(work, next=offset, lost=work.lost + lost, gaps=gaps), lost


def ended(context: Context, work: Head, gap: Gap, arrived: Arrivals, *, now_ms: int) -> Head:
    """Return the head whose gap before some messages ends at the arrival of the first of them.

    If that is later than now, this clock is behind the broker's, perhaps by more than tolerated:
    then the message determines how long the gap is.
    """
    window = context.window
    first_ms = int(np.atleast_1d(arrived.clock_ms)[0])
    last = window.pane(first_ms + window.future_ms)
    last = last if first_ms > now_ms else min(last, gap.last)
    return replace(work, gaps=end_gap(work.gaps, gap, last))
