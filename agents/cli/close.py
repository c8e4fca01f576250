"""`ldpstream close`: close all panes up to a time, at the end of a replay."""

from typing import Final

import click

from ldpstream.agents.broker.record_time import now_ms
from ldpstream.agents.cli.terminal import broker
from ldpstream.agents.cli.terminal.common import (
    Parsed,
    config_option,
    confirm,
    count,
    load_collection,
)
from ldpstream.agents.state.windows import WindowSpec
from ldpstream.mechanisms.base.times import format_duration, format_time, parse_time

_FEW_MS: Final = 100_000_000_000  # since 1970: March 1973


def _time(text: str) -> int:
    try:
        time_ms = parse_time(text)
    except ValueError as error:
        raise ValueError(f"expected {error}") from None
    if ":" not in text and abs(time_ms) < _FEW_MS:
        # More likely a year or a number of seconds than a time in the 1970s.
        raise ValueError(
            f"expected an RFC 3339 time with Z or an offset, such as {format_time(now_ms())}, "
            f"or epoch milliseconds, got {text}, which is {format_time(time_ms)}"
        )
    return time_ms


TIME: Final = Parsed("time", _time)
"""A time on the command line: RFC 3339, or epoch milliseconds from March 1973 on."""


@click.command()
@config_option
@click.option(
    "--until",
    type=TIME,
    required=True,
    metavar="TIME",
    help="The end of the last pane to close: RFC 3339, or epoch milliseconds.",
)
@click.option("--yes", is_flag=True, help="Do not ask, whatever expires.")
@click.argument("name")
def close(config_file: str, name: str, until: int, *, yes: bool) -> None:
    """Close all panes up to TIME.

    It takes effect in each partition once everything produced until now has been read; reports for
    those panes are late from then on. The collection's clock advances to TIME, and windows that
    ended more than the retention before it expire, so choose a TIME in the future only for
    collections that get no more reports. Asks first where TIME is further ahead than the retention.
    """
    config, collection = load_collection(config_file, name)
    ahead_ms = until - now_ms()
    warning = _warning(until, ahead_ms, collection.window) if ahead_ms > 0 else ""
    if ahead_ms > collection.window.retention_ms and not yes:
        confirm(f"Close {name} until {format_time(until)}? {warning[0].upper()}{warning[1:]}.")
    ends = broker.run(
        broker.close_panes(config.kafka, collection, until), config.kafka, config_file
    )
    total = sum(ends.values())
    click.echo(
        f"{name} closes up to {format_time(until)} once the {count(total, 'record')} in its "
        f"{count(len(ends), 'partition')} {'has' if total == 1 else 'have'} been read"
    )
    if warning:
        click.echo(warning, err=True)


def _warning(until_ms: int, ahead_ms: int, window: WindowSpec) -> str:
    warning = f"this is ahead of the clock: all reports until {format_time(until_ms)} will be late"
    if ahead_ms <= window.retention_ms:
        return warning
    retention = format_duration(window.retention_ms)
    return f"{warning}, and windows that ended more than {retention} before then expire"
