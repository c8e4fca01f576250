"""The windows of a running worker, as `ldpstream query` prints them."""

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

import click

from ldpstream.agents.client import Client, RefusedError
from ldpstream.agents.document import EstimateDocument
from ldpstream.agents.document.answers import WindowState
from ldpstream.agents.document.flat import HEADER, document_rows, to_csv
from ldpstream.agents.terminal.client import connect
from ldpstream.agents.terminal.errors import Failed
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


def print_windows(
    url: str, name: str, token: str | None, wanted: Wanted, options: Mapping[str, Sequence[str]]
) -> None:
    """Ask the worker at a URL for windows of a collection, and print them.

    Raises:
        Refused, Failed: as `connect`.
        Failed: where there is no such window.
    """
    asyncio.run(_print(url, name, token, wanted, options))


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
