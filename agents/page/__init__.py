"""The live page: static files that ask the HTTP API, and nothing from any other host."""

from dataclasses import dataclass
from importlib.resources import files
from typing import Final

_TYPES: Final = {
    "index.html": "text/html",
    "page.css": "text/css",
    "page.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


@dataclass(frozen=True)
class Asset:
    """One file of the page."""

    name: str
    content_type: str
    body: bytes


def load_assets() -> dict[str, Asset]:
    """Return the files of the page by name; `index.html` is the page itself."""
    folder = files("ldpstream.agents.page")
    return {
        name: Asset(name, content_type, (folder / name).read_bytes())
        for name, content_type in _TYPES.items()
    }
