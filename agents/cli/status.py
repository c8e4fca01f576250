"""`ldpstream status`: how far a running worker is."""

import asyncio
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from ldpstream.agents.http.answers import CollectionStatus, PartitionStatus
from ldpstream.agents.terminal.client import connect, read_token, token_options
from ldpstream.agents.terminal.tables import reasons_text, table_console

COLUMNS = ("partition", "owned", "next", "end", "lag", "watermark", "counted", "late", "rejected")


@click.command()
@click.option("--json", "as_json", is_flag=True, help='Print {"collections": [status, ...]}.')
@token_options
@click.argument("url")
def status(url: str, *, as_json: bool, token_env: str | None, token_file: Path | None) -> None:
    """Show collections, partitions, lag and watermarks of the worker at URL.

    Counters, next offsets and watermarks are those of all workers; `owned` and `end` are what the
    worker that answers knows. The specs that a collection accepts beside its own follow it.
    """
    found = asyncio.run(_ask(url, read_token(token_env, token_file)))
    if as_json:
        joined = ", ".join(answer.model_dump_json() for answer in found)
        click.echo(f'{{"collections": [{joined}]}}')
        return
    console = table_console()
    for answer in found:
        show(answer, console)


async def _ask(url: str, token: str | None) -> list[CollectionStatus]:
    async with connect(url, token=token) as worker:
        return [
            await worker.status(one.name, fingerprint=fingerprint)
            for one in await worker.collections()
            for fingerprint in (None, *(spec.fingerprint for spec in one.accepted))
        ]


def show(answer: CollectionStatus, console: Console) -> None:
    """Print one collection."""
    state = "stopped" if answer.stopped else "ready" if answer.ready else "not ready"
    table = Table(
        title=f"{answer.collection} ({answer.fingerprint}): {state}", title_justify="left"
    )
    for column in COLUMNS:
        table.add_column(column, justify="left" if column == "watermark" else "right")
    for partition in answer.partitions:
        table.add_row(*_cells(partition))
    table.add_section()
    totals = (answer.counted, answer.late, answer.rejected)
    table.add_row("all", *[""] * 5, *(f"{number:,}" for number in totals))
    console.print(table)
    reasons = reasons_text(answer)
    if reasons:
        console.print(f"rejected: {reasons}", markup=False)
    if answer.lost_offsets:
        console.print(f"lost: {answer.lost_offsets:,} offsets deleted before they were read")
    for problem in answer.problems:
        console.print(f"problem: {problem}", markup=False)


def _cells(one: PartitionStatus) -> list[str]:
    watermark = one.watermark or "none yet"
    return [
        str(one.partition),
        "yes" if one.owned else "no",
        _number(one.next),
        _number(one.end_offset),
        _number(one.lag),
        f"{watermark} (idle)" if one.idle else watermark,
        f"{one.counted:,}",
        f"{one.late:,}",
        f"{sum(one.rejected.values()):,}",
    ]


def _number(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"
