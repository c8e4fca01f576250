"""Rule 8, first half: which windows are final, and what their finals say.

A window is final when all its panes are closed in every partition's winning head; nothing that is
counted later can then fall into it. The owner of partition 0 decides, from the winning heads and
live cells of all partitions and never from memory, and stores each final as a cell. Windows without
reports get none.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ldpstream.agents.context import Context
from ldpstream.agents.records import Head
from ldpstream.agents.tail import Tail
from ldpstream.agents.view import totals, windows_with


class Decision(NamedTuple):
    """Windows below `final` are decided; `contents` are the new finals, by window."""

    final: int
    contents: list[tuple[int, bytes]]


def decide(context: Context, tails: Sequence[Tail], heads: Sequence[Head], final: int) -> Decision:
    """Decide windows from `final` on, at most `context.finals_a_step` of them with reports.

    `tails` and their winning `heads` are those of all partitions that finals wait for.
    """
    window = context.window
    end = window.final(min(head.closed for head in heads))
    if end <= final:
        return Decision(final, [])
    panes = {
        pane
        for tail in tails
        for pane in tail.panes(window.first_pane(final), window.closing(end))
        if tail.totals(pane).n
    }
    contents: list[tuple[int, bytes]] = []
    for number in windows_with(window, sorted(panes), first=final):
        if number >= end:
            break
        if len(contents) == context.finals_a_step:
            return Decision(number, contents)
        contents.append((number, context.compose(totals(context, tails, *window.span(number)))))
    return Decision(end, contents)
