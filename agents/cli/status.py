"""`ldpstream status`: how far a running worker is."""

import asyncio
from urllib.parse import quote

import click
from rich.console import Console
from rich.table import Table

from ldpstream.agents.cli.client import connect
from ldpstream.agents.cli.tables import table_console
from ldpstream.agents.http.answers import CollectionList, CollectionStatus, PartitionStatus

COLUMNS = ("partition", "owned", "next", "end", "lag", "watermark", "counted", "late", "rejected")


@click.command()
@click.option("--json", "as_json", is_flag=True, help='Print {"collections": [status, ...]}.')
@click.argument("url")
def status(url: str, *, as_json: bool) -> None:
    """Show collections, partitions, lag and watermarks of the worker at URL.

    Counters, next offsets and watermarks are those of all workers; `owned` and `end` are what the
    worker that answers knows.
    """
    found = asyncio.run(_ask(url))
    if as_json:
        joined = b", ".join(raw for raw, _ in found)
        click.echo(b'{"collections": [' + joined + b"]}")
        return
    console = table_console()
    for _, answer in found:
        show(answer, console)


async def _ask(url: str) -> list[tuple[bytes, CollectionStatus]]:
    async with connect(url) as worker:
        listed = CollectionList.model_validate_json(await worker.get("/api/collections"))
        paths = [f"/api/collections/{quote(one.name)}/status" for one in listed.collections]
        answers = [await worker.get(path) for path in paths]
    return [(raw, CollectionStatus.model_validate_json(raw)) for raw in answers]


def show(answer: CollectionStatus, console: Console) -> None:
    """Print one collection."""
    state = "ready" if answer.ready else "not ready"
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
    reasons = _reasons(answer)
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


def _reasons(answer: CollectionStatus) -> str:
    sums: dict[str, int] = {}
    for partition in answer.partitions:
        for reason, count in partition.rejected.items():
            sums[reason] = sums.get(reason, 0) + count
    return ", ".join(f"{reason} {count:,}" for reason, count in sums.items())
