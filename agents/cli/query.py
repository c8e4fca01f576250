"""`ldpstream query`: the windows of a running worker, as tables, pictures, CSV or JSON."""

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import click

from ldpstream.agents.client import Client, RefusedError
from ldpstream.agents.document import EstimateDocument
from ldpstream.agents.document.flat import HEADER, document_rows, to_csv
from ldpstream.agents.http.answers import WindowState
from ldpstream.agents.terminal.client import connect, read_token, token_options
from ldpstream.agents.terminal.errors import Failed, Refused
from ldpstream.agents.terminal.options import asked_texts, query_options
from ldpstream.agents.terminal.plots import show_plots
from ldpstream.agents.terminal.tables import show_document, table_console

PLOTTED: Final = 200
"""Windows that one picture shows at most: the newest."""
_GONE: Final = 410


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Which windows, and in which form: at most one of `json`, `csv` and `plot`."""

    start: str | None
    end: str | None
    limit: int | None
    fingerprint: str | None
    json: bool
    csv: bool
    plot: bool


@click.command()
@click.option("--last", type=click.IntRange(1), metavar="N", help="The newest N windows.")
@click.option("--from", "start", metavar="TIME", help="Windows that start at TIME or later.")
@click.option("--to", "end", metavar="TIME", help="Windows that end at TIME or earlier.")
@click.option("--all", "every", is_flag=True, help="All windows that are kept.")
@click.option(
    "--fingerprint", metavar="HEX", help="Of an earlier spec that the collection still accepts."
)
@click.option("--json", "as_json", is_flag=True, help='Print {"windows": [document, ...]}.')
@click.option("--csv", "as_csv", is_flag=True, help="Print one row an entry, as CSV.")
@click.option(
    "--plot", is_flag=True, help="Draw bounds; of several windows the course of every query."
)
@token_options
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
    fingerprint: str | None,
    as_json: bool,
    as_csv: bool,
    plot: bool,
    token_env: str | None,
    token_file: Path | None,
    **options: Any,
) -> None:
    """Print estimates of windows of collection NAME, from the worker at URL.

    The newest window is printed unless others are asked for; oldest first.
    """
    if every and last is not None:
        raise Refused("--last: expected --last or --all, not both")
    if as_json + as_csv + plot > 1:
        raise Refused("--json, --csv, --plot: expected one of them at most")
    spanned = start is not None or end is not None
    limit = None if every or (last is None and spanned) else last or 1
    wanted = Wanted(
        start=start,
        end=end,
        limit=limit,
        fingerprint=fingerprint,
        json=as_json,
        csv=as_csv,
        plot=plot,
    )
    token = read_token(token_env, token_file)
    asyncio.run(_print(url, name, token, wanted, asked_texts(options)))


async def _print(
    url: str, name: str, token: str | None, wanted: Wanted, options: Mapping[str, Sequence[str]]
) -> None:
    async with connect(url, token=token) as worker:
        windows = await _windows(worker, name, wanted)
        asked = [(word, text) for word, texts in options.items() for text in texts]
        if fingerprint := wanted.fingerprint:
            asked.append(("fingerprint", fingerprint))
        gone: list[WindowState] = []
        documents = _documents(worker, name, windows, asked, gone)
        together = "simultaneous" in options
        if wanted.json:
            await _print_json(documents)
        elif wanted.csv:
            await _print_csv(documents)
        elif not windows:
            spanned = wanted.start is not None or wanted.end is not None
            raise Failed(f"{name}: no window with reports {'in that span' if spanned else 'yet'}")
        elif wanted.plot:
            parsed = [_parse(document) async for document in documents]
            minimum = (await worker.collection(name)).minimum
            if parsed:
                show_plots(parsed, table_console(), minimum=minimum, together=together)
        else:
            console = table_console()
            minimum = (await worker.collection(name)).minimum
            async for document in documents:
                show_document(_parse(document), console, minimum=minimum, together=together)
    if gone:
        said = f"{len(gone)} of {len(windows)} windows expired before they were read: left out"
        click.echo(f"{name}: {said}", err=True)


async def _windows(worker: Client, name: str, wanted: Wanted) -> list[WindowState]:
    """Return the windows of a span, oldest first."""
    limit = wanted.limit
    if wanted.plot:
        limit = PLOTTED if limit is None else min(limit, PLOTTED)
    if limit is not None:
        return await worker.newest(
            name, limit, start=wanted.start, end=wanted.end, fingerprint=wanted.fingerprint
        )
    found = worker.windows(name, start=wanted.start, end=wanted.end, fingerprint=wanted.fingerprint)
    return [one async for one in found]


async def _documents(
    worker: Client,
    name: str,
    windows: list[WindowState],
    asked: list[tuple[str, str]],
    gone: list[WindowState],
) -> AsyncIterator[bytes]:
    """Yield the windows' documents; those that expire meanwhile are added to `gone` instead."""
    path = f"/api/collections/{quote(name, safe='')}/estimate"
    for one in windows:
        span = [("start", one.window.start), ("end", one.window.end)]
        try:
            document = await worker.get(path, span + asked)
        except RefusedError as refused:
            if refused.status != _GONE:
                raise
            gone.append(one)
        else:
            yield document


def _parse(document: bytes) -> EstimateDocument:
    return EstimateDocument.model_validate_json(document)


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


async def _print_csv(documents: AsyncIterator[bytes]) -> None:
    """Print all documents as one table."""
    out = sys.stdout.buffer
    out.write(to_csv((), HEADER))
    async for document in documents:
        out.write(to_csv(document_rows(_parse(document)), None))
    out.flush()
