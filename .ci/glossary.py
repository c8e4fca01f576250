"""Lead from the first use of a term on a page to its entry in the glossary: a hook of MkDocs.

The entry's text is shown under the pointer. Terms that the glossary sets as code, such as keys,
are looked for in code alone, since as words they mean other things, too.
"""

import re
from html import escape
from pathlib import Path
from posixpath import dirname, relpath
from typing import Any, Final

GLOSSARY: Final = Path(__file__).parents[1] / "docs" / "reference" / "glossary.md"
PLACE: Final = "docs/reference/glossary.html"
_ENTRY: Final = re.compile(r"^## (.+)\n\n(.+)$", re.MULTILINE)
_PARTS: Final = re.compile(r"(<code>[^<]*</code>|<[^>]+>)")
_APART: Final = frozenset(
    {"a", "code", "h1", "h2", "h3", "h4", "h5", "h6", "math", "pre", "script", "style", "svg"}
)
"""Elements whose text has no links."""


def entries(text: str) -> dict[str, str]:
    """Return the glossary's terms, in backticks if they are code, with their meanings."""
    return dict(_ENTRY.findall(text))


def link_terms(html: str, terms: dict[str, str], glossary: str) -> str:
    """Return a page's content with its terms linked; `glossary` leads from it to the glossary."""
    words = sorted((term for term in terms if term[0] != "`"), key=len, reverse=True)
    plural = {f"{word[:-1]}ies": word for word in words if word.endswith("y")}
    spelled = re.compile(rf"\b({'|'.join(map(re.escape, [*plural, *words]))})(s?)\b", re.IGNORECASE)
    seen: set[str] = set()

    def linked(term: str, shown: str) -> str:
        if term in seen or term not in terms:
            return shown
        seen.add(term)
        anchor = term.strip("`").lower().replace(" ", "-")
        meaning = escape(terms[term].replace("`", ""))
        return f'<a class="term" href="{glossary}#{anchor}" title="{meaning}">{shown}</a>'

    def of_word(found: re.Match[str]) -> str:
        word = found[1].lower()
        return linked(plural.get(word, word), found[0])

    within: list[str] = []
    parts = _PARTS.split(html)
    for place, part in enumerate(parts):
        if part.startswith("<code>") and not within:
            key = part.removeprefix("<code>").removesuffix("</code>").partition(" = ")[0]
            parts[place] = linked(f"`{key}`", part)
        elif part.startswith("</") and within and within[-1] == part[2:-1]:
            within.pop()
        elif (tag := re.match(r"<(\w+)", part)) and tag[1] in _APART and not part.endswith("/>"):
            if not part.startswith("<code>"):
                within.append(tag[1])
        elif not part.startswith("<") and not within:
            parts[place] = spelled.sub(of_word, part)
    return "".join(parts)


def on_files(files: Any, config: Any) -> Any:
    """Add the style that `extra_css` names: a term is no link that a reader is told to follow."""
    from mkdocs.structure.files import File  # Tests of the rest have no MkDocs.

    rule = ".md-typeset a.term { color: inherit; text-decoration: underline dotted; }\n"
    files.append(File.generated(config, "assets/glossary.css", content=rule))
    return files


def on_page_content(html: str, *, page: Any, **_: object) -> str:
    """Link the terms of a page, but for the glossary's own."""
    if page.url == PLACE:
        return html
    return link_terms(
        html, entries(GLOSSARY.read_text("utf-8")), relpath(PLACE, dirname(page.url) or ".")
    )
