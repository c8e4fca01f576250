"""How far a running worker is, as `ldpstream status` prints it."""

import asyncio

from rich.console import Console

from ldpstream.agents.cli.terminal.client import connect
from ldpstream.agents.cli.terminal.tables import FittingTable, reasons_text
from ldpstream.agents.client import UnavailableError
from ldpstream.agents.document.answers import CollectionStatus, PartitionStatus
from ldpstream.mechanisms.base.texts import count

COLUMNS = ("partition", "owned", "next", "end", "lag", "watermark", "counted", "late", "rejected")


def ask_status(url: str) -> tuple[list[CollectionStatus], list[str]]:
    """Return the status of every collection and of every spec it accepts, and what is missing.

    Collections of shards without a worker are missing, with one line each that says why.
    """
    return asyncio.run(_ask(url))


async def _ask(url: str) -> tuple[list[CollectionStatus], list[str]]:
    answers, missing = list[CollectionStatus](), list[str]()
    async with connect(url) as worker:
        for collection in await worker.collections():
            prints = (None, *(spec.fingerprint for spec in collection.accepted))
            try:
                answers += [
                    await worker.status(collection.name, fingerprint=fingerprint)
                    for fingerprint in prints
                ]
            except UnavailableError as error:
                missing.append(str(error))
    return answers, missing


def show(answer: CollectionStatus, console: Console) -> None:
    """Print the status of one collection."""
    state = "stopped" if answer.stopped else "ready" if answer.ready else "not ready"
    table = FittingTable(
        title=f"{answer.collection} ({answer.fingerprint}): {state}", title_justify="left"
    )
    for column in COLUMNS:
        table.add_column(column, justify="left" if column == "watermark" else "right", no_wrap=True)
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
        console.print(f"lost: {count(answer.lost_offsets, 'offset')} deleted before being read")
    if answer.open_windows is not None:
        console.print(f"open windows: {answer.open_windows:,} with reports are not published yet")
    for partition in answer.partitions:
        if partition.wait is not None:
            longer = (
                f" ({partition.wait_seconds:,.0f} s beyond idle)"
                if partition.wait_seconds >= 1
                else ""
            )
            console.print(
                f"windows wait for partition {partition.partition}{longer}: {partition.wait}",
                markup=False,
            )
    for problem in answer.problems:
        console.print(f"problem: {problem}", markup=False)


def _cells(partition: PartitionStatus) -> list[str]:
    watermark = partition.watermark or "none yet"
    return [
        str(partition.partition),
        "yes" if partition.owned else "no",
        _number(partition.next),
        _number(partition.end_offset),
        _number(partition.lag),
        f"{watermark} (idle)" if partition.idle else watermark,
        f"{partition.counted:,}",
        f"{partition.late:,}",
        f"{sum(partition.rejected.values()):,}",
    ]


def _number(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"
