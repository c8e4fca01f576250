"""The live page: static files that use the HTTP API, and load nothing from other hosts."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final, get_args

from ldpstream.estimators.bounds.options import Method

_TYPES: Final = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    "LICENSE": "text/plain",
}

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


@dataclass(frozen=True)
class Asset:
    """One file of the page; its name is its path within the page's folder."""

    name: str
    content_type: str
    body: bytes


_METHODS: Final = "\n".join(
    f'<option value="{method}">{method}</option>' for method in get_args(Method)
)


_STYLES: Final = (
    "base",
    "head",
    "window",
    "tables",
    "views",
    "charts",
    "privacy",
    "columns",
    "phone",
    "outputs",
)
"""The parts of `page.css`, in the order in which they apply."""


def load_assets() -> dict[str, Asset]:
    """Return the files of the page by name; `index.html` is the page itself.

    Styles are one file, `page.css`: ten requests would delay the first paint.
    """
    files_by_name = _walk(files("ldpstream.agents.web.page"), "")
    assets = {
        name: Asset(name, content_type, file.read_bytes())
        for name, file in files_by_name
        for ending, content_type in _TYPES.items()
        if name.endswith(ending)
    }
    page = assets["index.html"]
    body = page.body.replace(b"<!-- methods -->", _METHODS.encode())
    styles = b"\n".join(assets.pop(f"css/{name}.css").body for name in _STYLES)
    joined = Asset("page.css", "text/css", styles)
    return assets | {page.name: replace(page, body=body), joined.name: joined}


def _walk(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    for entry in sorted(folder.iterdir(), key=lambda file: file.name):
        if entry.is_dir():
            yield from _walk(entry, f"{prefix}{entry.name}/")
        else:
            yield prefix + entry.name, entry
