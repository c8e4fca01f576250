"""Tables that never cut a number: rows that are too wide become sentences."""

from collections.abc import Iterator
from typing import Any, Final

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

_NAME_COLUMNS: Final = 12
"""Names are folded, and get at least this many columns of the terminal."""
_BORDER: Final = 3
"""A column's line, and a space on each side."""


class FittingTable(Table):
    """A rich table whose left-justified columns are names, which may fold.

    All other columns are numbers. Where these do not fit into the terminal, each row is printed as
    a sentence instead: `bus: share 63.60%, low 50.90%`.
    """

    def add_column(self, header: Any = "", *more: Any, **options: Any) -> None:
        """Add a column, with rich's own options."""
        names = options.get("justify", "left") == "left" and not options.get("no_wrap")
        options.setdefault("overflow", "fold")
        super().add_column(header, *more, **{**options, "no_wrap": not names})

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        needed = 1
        for column in self.columns:
            width = max(cell_len(_plain(cell)) for cell in (column.header, *column.cells))
            needed += _BORDER + (width if column.no_wrap else min(width, _NAME_COLUMNS))
        if needed <= options.max_width:
            yield from super().__rich_console__(console, options)
            return
        if self.title:
            yield Text(_plain(self.title))
        yield from self._sentences()

    def _sentences(self) -> Iterator[Text]:
        headings = [_plain(column.header) for column in self.columns]
        for cells in zip(*(column.cells for column in self.columns), strict=True):
            name, *texts = map(_plain, cells)
            said = (f"{heading} {text}" for heading, text in zip(headings[1:], texts, strict=True)
                    if text)  # fmt: skip
            yield Text(f"{headings[0]} {name}: {', '.join(said)}", overflow="fold")


def _plain(cell: object) -> str:
    return cell.plain if isinstance(cell, Text) else str(cell)
