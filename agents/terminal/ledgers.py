"""The ledger's options of commands that privatize: all lines are of one person."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

import click

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.kafka.record_time import now_ms
from ldpstream.agents.terminal.common import CHUNK, Command
from ldpstream.agents.terminal.errors import Failed, Refused
from ldpstream.agents.terminal.times import near_now
from ldpstream.agents.terminal.values import read_values, source_name
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.base.times import parse_duration
from ldpstream.mechanisms.ledger import BudgetError, Ledger, LedgerError, Release


def ledger_options(command: Command) -> Command:
    """Add `--ledger FILE`, `--budget EPSILON` and `--horizon DURATION`."""
    for option in (
        click.option("--horizon", metavar="DURATION", help='Of the budget, "1d"; else for ever.'),
        click.option("--budget", metavar="EPSILON", help="What all reports may lose together."),
        click.option(
            "--ledger",
            "ledger_file",
            type=click.Path(dir_okay=False),
            metavar="FILE",
            help="All lines are one person's: one report a window, kept here, within --budget.",
        ),
    ):
        command = option(command)
    return command


@contextmanager
def opened(
    collection: CollectionConfig, file: str, *, budget: str | None, horizon: str | None
) -> Iterator[Ledger]:
    """Return the ledger that the options name, closed at the end of the block.

    Windows are the collection's panes: a report counts in one of them.

    Raises:
        Refused: where an option is missing or impossible, or the file is no ledger.
    """
    if budget is None:
        raise Refused("--budget: expected a number above 0 with --ledger")
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
        )
    except SpecError as error:
        raise Refused(f"--{error}" if error.path == "budget" else str(error)) from None
    except LedgerError as error:
        raise Refused(str(error)) from None
    with ledger:
        yield ledger


def refuse_without_ledger(budget: str | None, horizon: str | None) -> None:
    """Refuse a ledger's options without a ledger: they would promise what nobody keeps."""
    for name, given in (("--budget", budget), ("--horizon", horizon)):
        if given is not None:
            raise Refused(f"{name}: expected --ledger with it")


def releases(
    ledger: Ledger, collection: CollectionConfig, stream: BinaryIO, *, times: bool, replay: bool
) -> Iterator[Release]:
    """Yield the report of each value line's window, in the lines' order.

    Raises:
        Refused: naming the line, for what is no value.
        Failed: naming the line, where its report would go beyond the budget.
    """
    name, line, near = source_name(stream), 0, near_now(collection.window, replay=replay)
    domain = collection.spec.domain
    for chunk in read_values(stream, domain, times=times, chunk=CHUNK, near=near):
        given = [now_ms()] * len(chunk.indices) if chunk.times_ms is None else chunk.times_ms
        for index, time_ms in zip(chunk.indices.tolist(), list(given), strict=True):
            line += 1
            try:
                yield ledger.release_index(collection.spec, index, time_ms=int(time_ms))
            except BudgetError as error:
                raise Failed(f"{name}: line {line}: {error}") from None
            except LedgerError as error:
                raise Refused(f"{name}: line {line}: {error}") from None
