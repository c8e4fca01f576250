"""`ldpstream query`: the windows of a running worker."""

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Any, Final
from urllib.parse import quote

import click

from ldpstream.agents.cli.client import WorkerClient, connect
from ldpstream.agents.cli.errors import Failed, Refused
from ldpstream.agents.cli.options import QueryOptions, query_options
from ldpstream.agents.cli.tables import show_document, table_console
from ldpstream.agents.document import EstimateDocument
from ldpstream.agents.http.answers import WindowList, WindowState
from ldpstream.mechanisms.times import parse_time

_PAGE: Final = 10_000


@click.command()
@click.option("--last", type=click.IntRange(1), metavar="N", help="The newest N windows.")
@click.option("--from", "start", metavar="TIME", help="Windows that start at TIME or later.")
@click.option("--to", "end", metavar="TIME", help="Windows that end at TIME or earlier.")
@click.option("--all", "every", is_flag=True, help="All windows that are kept.")
@click.option("--json", "as_json", is_flag=True, help='Print {"windows": [document, ...]}.')
@query_options
@click.argument("url")
@click.argument("name")
def query(
    url: str,
    name: str,
    *,
    last: int | None,
    start: str | None,
    end: str | None,
    every: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Print estimates of windows of collection NAME, from the worker at URL.

    The newest window is printed unless others are asked for; oldest first.
    """
    if every and last is not None:
        raise Refused("--last: expected --last or --all, not both")
    span = [(name_, text) for name_, text in (("from", start), ("to", end)) if text is not None]
    limit = None if every or (last is None and span) else last or 1
    asyncio.run(_print(url, name, span, limit, QueryOptions(**options), as_json=as_json))


async def _print(
    url: str,
    name: str,
    span: list[tuple[str, str]],
    limit: int | None,
    options: QueryOptions,
    *,
    as_json: bool,
) -> None:
    async with connect(url) as worker:
        path = f"/api/collections/{quote(name, safe='')}"
        windows = await _windows(worker, path, span, limit)
        documents = _documents(worker, path, windows, options)
        if as_json:
            await _print_json(documents)
        elif windows:
            console = table_console()
            async for document in documents:
                show_document(EstimateDocument.model_validate_json(document), console)
        else:
            raise Failed(f"{name}: no window with reports {'in that span' if span else 'yet'}")


async def _windows(
    worker: WorkerClient, path: str, span: list[tuple[str, str]], limit: int | None
) -> list[WindowState]:
    """Return the newest windows of a span, oldest first: a page of them at a time."""
    found: list[WindowState] = []
    asked = dict(span)
    while limit is None or len(found) < limit:
        page = _PAGE if limit is None else min(_PAGE, limit - len(found))
        answer = WindowList.model_validate_json(
            await worker.get(f"{path}/windows", [*asked.items(), ("last", str(page))])
        )
        found = answer.windows + found
        if not answer.more:
            break
        asked["to"] = _before(answer.windows[0])
    return found


def _before(window: WindowState) -> str:
    """Return the latest end that only windows before this one have; ends are all different."""
    return str(parse_time(window.window.end) - 1)


async def _documents(
    worker: WorkerClient, path: str, windows: list[WindowState], options: QueryOptions
) -> AsyncIterator[bytes]:
    for one in windows:
        span = [("start", one.window.start), ("end", one.window.end)]
        yield await worker.get(f"{path}/estimate", span + options.parameters())


async def _print_json(documents: AsyncIterator[bytes]) -> None:
    """Print the documents byte for byte as the worker wrote them."""
    out = sys.stdout.buffer
    out.write(b'{"windows": [')
    first = True
    async for document in documents:
        out.write(b"\n" if first else b",\n")
        out.write(document)
        first = False
    out.write(b"\n]}\n")
    out.flush()
