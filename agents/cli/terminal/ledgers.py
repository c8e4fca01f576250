"""The ledger of commands that privatize: all lines belong to one person."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

import click

from ldpstream.agents.broker.record_time import now_ms
from ldpstream.agents.cli.terminal.common import CHUNK, count
from ldpstream.agents.cli.terminal.errors import Failed, Refused
from ldpstream.agents.cli.terminal.options import Spending
from ldpstream.agents.cli.terminal.value_options import Reading
from ldpstream.agents.cli.terminal.values import read_values, source_name
from ldpstream.agents.config import CollectionConfig
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.base.times import format_duration, parse_duration
from ldpstream.mechanisms.ledger import BudgetError, Ledger, LedgerError, Release, SkippedError


@contextmanager
def opened(collection: CollectionConfig, file: str, spending: Spending) -> Iterator[Ledger]:
    """Open the ledger that the options name, closed at the end of the block.

    The ledger's windows are the collection's panes, since a report counts in one of them. Missing
    options are taken from the collection's `spread`.
    """
    spread, budget, horizon = collection.spread, spending.budget, spending.horizon
    if spread is not None:
        budget = budget or str(spread.budget(collection.spec))
        horizon = horizon or format_duration(spread.horizon_ms)
    if budget is None:
        raise Refused(
            "--budget: expected a number above 0 with --ledger, where the collection has no spread"
        )
    try:
        horizon_ms = None if horizon is None else parse_duration(horizon)
    except ValueError as error:
        raise Refused(f"--horizon: expected {error}") from None
    if horizon_ms == 0:
        raise Refused("--horizon: expected a duration above 0; without one the budget is for ever")
    try:
        ledger = Ledger(
            file,
            specs=[(collection.spec, collection.window.pane_ms)],
            budget=budget,
            horizon_ms=horizon_ms,
            spread="rolling" if spread is not None and spread.rolling else spread is not None,
        )
    except SpecError as error:
        raise Refused(f"--{error}" if error.path == "budget" else str(error)) from None
    except LedgerError as error:
        raise Refused(str(error)) from None
    with ledger:
        yield ledger


def releases(
    ledger: Ledger, collection: CollectionConfig, stream: BinaryIO, reading: Reading
) -> Iterator[Release]:
    """Yield the report of each value line's window, in the lines' order.

    Lines of windows in which the device does not take part are skipped, and counted at the end.
    """
    name, skipped = source_name(stream), 0
    for chunk in read_values(stream, collection.spec.domain, reading, chunk=CHUNK):
        times_ms = [now_ms()] * len(chunk.indices) if chunk.times_ms is None else chunk.times_ms
        for line, index, time_ms in zip(
            chunk.lines.tolist(), chunk.indices.tolist(), list(times_ms), strict=True
        ):
            try:
                yield ledger.release_index(collection.spec, index, time_ms=int(time_ms))
            except SkippedError:
                skipped += 1
            except BudgetError as error:
                what = error.explain(budget="--budget", horizon="--horizon")
                raise Failed(f"{name}: line {line}: {what}") from None
            except LedgerError as error:
                raise Refused(f"{name}: line {line}: {error}") from None
    if skipped:
        lines = count(skipped, "line")
        click.echo(f"{name}: {lines} skipped: the budget is spread over other windows", err=True)
