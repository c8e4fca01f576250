"""Tables on a terminal and on a page, where each stands between two comments."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

_END = "<!-- /engine -->"


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Return a table whose first column is text, and the others numbers."""
    made = Table(title=title, title_justify="left")
    for place, column in enumerate(columns):
        made.add_column(column, justify="left" if place == 0 else "right")
    for row in rows:
        made.add_row(*row)
    return made


def markdown(made: Table) -> str:
    """Return a table as Markdown, its title before it."""
    columns = made.columns
    heads = [str(column.header) for column in columns]
    rules = ["---" if column.justify == "left" else "---:" for column in columns]
    rows = zip(*(column.cells for column in columns), strict=True)
    lines = ["| " + " | ".join(map(str, cells)) + " |" for cells in (heads, rules, *rows)]
    return "\n".join([f"{made.title}:", "", *lines])


class Report:
    """The results so far, printed and written to a page immediately, so that nothing is lost.

    `page` is a Markdown file, or None.

    Raises:
        ValueError: if the page has no place for one of the sections.
    """

    def __init__(self, page: Path | None, sections: tuple[str, ...]) -> None:
        self._page = page
        self._console = Console(width=140)
        if page is None:
            return
        text = page.read_text("utf-8")
        for section in sections:
            if not _place(section).search(text):
                raise ValueError(f"{page}: expected <!-- engine: {section} --> and {_END}")

    def show(self, section: str, found: Table) -> None:
        """Show a table; it replaces an earlier one of the same section."""
        self._console.print(found)
        self.write(section, markdown(found))

    def say(self, section: str, text: str) -> None:
        """Show a sentence."""
        self._console.print(text, markup=False, highlight=False)
        self.write(section, text)

    def write(self, section: str, text: str) -> None:
        """Write to the page only."""
        if self._page is not None:
            before = self._page.read_text("utf-8")
            after = _place(section).sub(lambda m: f"{m[1]}\n{text}\n\n{m[2]}", before)
            self._page.write_text(after, "utf-8")


def _place(section: str) -> re.Pattern[str]:
    start = re.escape(f"<!-- engine: {section} -->\n")
    return re.compile(f"({start}).*?({re.escape(_END)})", re.DOTALL)
