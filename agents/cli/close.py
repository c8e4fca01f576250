"""`ldpstream close`: close all panes up to a time, at the end of a replay."""

import click

from ldpstream.agents.broker.record_time import now_ms
from ldpstream.agents.cli.terminal import broker
from ldpstream.agents.cli.terminal.common import (
    confirm,
    count,
    load_collection,
)
from ldpstream.agents.state.windows import WindowSpec
from ldpstream.mechanisms.base.times import format_duration, format_time


def close_collection(config_file: str, name: str, until: int, *, yes: bool) -> None:
    """Close all panes of a collection up to a time."""
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
