"""Windows of a running worker, as `ldpstream query` prints them."""

import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

import click

from ldpstream.agents.cli.terminal.client import connect
from ldpstream.agents.cli.terminal.errors import Failed
from ldpstream.agents.cli.terminal.labels import ShownLabels
from ldpstream.agents.cli.terminal.options import Form
from ldpstream.agents.cli.terminal.tables import Showing, show_document, table_console
from ldpstream.agents.client import Client, RefusedError
from ldpstream.agents.document.answers import Collection, WindowState
from ldpstream.agents.document.flat import HEADER, document_rows, to_csv
from ldpstream.agents.document.model import EstimateDocument, Window

WATCHED: Final = "anytime"
_GONE: Final = 410


@dataclass(frozen=True, kw_only=True)
class WindowSelection:
    """Which windows to print, in which form; or a `span`, whose panes are added up."""

    start: str | None
    end: str | None
    span: tuple[str, str] | None
    limit: int | None
    fingerprint: str | None
    form: Form


async def print_windows(
    url: str,
    name: str,
    selection: WindowSelection,
    options: Mapping[str, Sequence[str]],
) -> None:
    """Ask the worker at a URL for windows of a collection, and print them."""
    async with connect(url) as worker:
        collection = await worker.collection(name)
        parameters = [(word, text) for word, texts in options.items() for text in texts]
        if fingerprint := selection.fingerprint:
            parameters.append(("fingerprint", fingerprint))
        reader = _Reader(worker, collection, selection, parameters)
        windows = await reader.windows()
        documents = reader.documents(windows)
        await _name_other_sizes(worker, name, selection)
        showing = Showing(
            minimum=collection.minimum,
            together="simultaneous" in options,
            labels=ShownLabels.of_collection(collection),
        )
        if selection.form == "json":
            await _print_json(documents)
        elif selection.form == "csv":
            await _print_csv(documents)
        elif not windows:
            spanned = selection.start is not None or selection.end is not None
            raise Failed(f"{name}: no window with reports {'in that span' if spanned else 'yet'}")
        else:
            console = table_console()
            async for document in documents:
                show_document(_parse(document), console, showing)
    if reader.gone:
        problem = f"{reader.gone} of {len(windows)} windows expired before they were read: left out"
        click.echo(f"{name}: {problem}", err=True)


async def _name_other_sizes(worker: Client, name: str, selection: WindowSelection) -> None:
    """Say on standard error where the windows of other sizes are, which a worker does not have."""
    status = await worker.status(name, fingerprint=selection.fingerprint)
    for size in status.other_sizes:
        click.echo(
            f"{name}: windows of {status.size}; those of {size}, from before a change of size, "
            f"are in the estimates topic: ldpstream finals {name} --size '{size}'",
            err=True,
        )


@dataclass
class _Reader:
    """Fetches the wanted windows and their documents."""

    worker: Client
    collection: Collection
    selection: WindowSelection
    parameters: Sequence[tuple[str, str]]
    gone: int = 0
    """Windows that expired before their documents were read."""

    async def windows(self) -> list[WindowState]:
        """Return the windows, oldest first; a span to be added up counts as one."""
        selection, limit, name = self.selection, self.selection.limit, self.collection.name
        if selection.span is not None:
            start, end = selection.span
            parameters = [pair for pair in self.parameters if pair[0] != "top"]
            document = _parse(await self._get(start, end, [*parameters, ("top", "0")]))
            window = Window(start=start, end=end)
            final = document.final
            return [WindowState(window=window, n=0, late=0, final=final, published=False)]
        first, last, fingerprint = selection.start, selection.end, selection.fingerprint
        if limit is not None:
            return await self.worker.newest(
                name, limit, start=first, end=last, fingerprint=fingerprint
            )
        listed = self.worker.windows(name, start=first, end=last, fingerprint=fingerprint)
        return [state async for state in listed]

    async def documents(self, windows: Sequence[WindowState]) -> AsyncIterator[bytes]:
        """Yield the windows' documents; windows that expire meanwhile are counted as gone."""
        for window in windows:
            try:
                document = await self._document(window)
            except RefusedError as refused:
                if refused.status != _GONE or self.selection.span is not None:
                    raise
                self.gone += 1
            else:
                yield document

    async def _document(self, window: WindowState) -> bytes:
        """Return a window's document.

        People look at an open window more than once. So, as on the page, its bounds hold at every
        moment at once, where such bounds exist and no other method was asked for.
        """
        span = window.window.start, window.window.end
        if not window.final and self._may_be_watched():
            document = await self._get(*span, [*self.parameters, ("method", WATCHED)])
            if not _parse(document).final:
                return document
            # It has closed since it was listed, and is not looked at again: the usual bounds do.
        return await self._get(*span, self.parameters)

    def _may_be_watched(self) -> bool:
        """Return whether to ask for anytime bounds while a window is open."""
        collection, parameters = self.collection, dict(self.parameters)
        if collection.method.startswith(WATCHED) or "method" in parameters:
            return False
        # Anytime bounds do not exist for an attribute's respondents: only some report on it.
        estimand = parameters.get("estimand", collection.estimand)
        return not collection.attributes or estimand != "respondents"

    async def _get(self, start: str, end: str, parameters: Sequence[tuple[str, str]]) -> bytes:
        path = f"/api/collections/{quote(self.collection.name, safe='')}/estimate"
        return await self.worker.get(path, [("start", start), ("end", end), *parameters])


def _parse(document: bytes) -> EstimateDocument:
    return EstimateDocument.model_validate_json(document)


async def _print_json(documents: AsyncIterator[bytes]) -> None:
    """Print the documents, byte for byte as the worker wrote them."""
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
    """Print all documents as one CSV table."""
    out = sys.stdout.buffer
    out.write(to_csv((), HEADER))
    async for document in documents:
        out.write(to_csv(document_rows(_parse(document)), None))
    out.flush()
