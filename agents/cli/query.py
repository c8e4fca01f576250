"""`ldpstream query`: print windows of a running worker, as tables, CSV or JSON."""

from typing import Any

from ldpstream.agents.cli.terminal.client import check_reachable
from ldpstream.agents.cli.terminal.errors import Refused
from ldpstream.agents.cli.terminal.options import Form
from ldpstream.agents.cli.terminal.query_options import query_parameters


def query_windows(
    url: str,
    name: str,
    *,
    last: int | None,
    start: str | None,
    end: str | None,
    every: bool,
    first: str | None,
    last_end: str | None,
    compare: str | None,
    fingerprint: str | None,
    form: Form,
    **options: Any,
) -> None:
    """Print estimates of the windows that the options choose."""
    if every and last is not None:
        raise Refused("--last: expected --last or --all, not both")
    spanned = start is not None or end is not None
    span = None if first is None or last_end is None else (first, last_end)
    if (first is None) != (last_end is None):
        raise Refused("--start, --end: expected both, or neither")
    if span is not None and (spanned or every or last is not None):
        raise Refused("--start: expected no option that chooses windows, only --end with it")
    if compare is not None and (spanned or every or last is not None):
        raise Refused("--compare: expected --start and --end to choose the span")
    limit = None if every or (last is None and spanned) else last or 1
    check_reachable(url)
    import asyncio  # once a worker is to be asked

    if compare is not None:
        from ldpstream.agents.cli.terminal.changes import print_change

        parameters = query_parameters(options)
        parameters |= {} if fingerprint is None else {"fingerprint": [fingerprint]}
        asyncio.run(
            print_change(url, name, span=span, compared=compare, form=form, options=parameters)
        )
        return
    from ldpstream.agents.cli.terminal.windows import WindowSelection, print_windows

    selection = WindowSelection(
        start=start,
        end=end,
        span=span,
        limit=limit,
        fingerprint=fingerprint,
        form=form,
    )
    asyncio.run(print_windows(url, name, selection, query_parameters(options)))
