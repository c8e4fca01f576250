"""The live page: static files that use the HTTP API, and load nothing from other hosts."""

import gzip
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import PurePosixPath
from typing import Final, get_args

from ldpstream.agents.web.page.bundle import bundle_modules
from ldpstream.estimators.bounds.options import Method

_TYPES: Final = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    "": "text/plain",
}

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


_METHODS: Final = "\n".join(
    f'<option value="{method}">{method}</option>' for method in get_args(Method)
)
_STYLES: Final = (
    "vendor/uplot/uplot.min.css",
    *(
        f"css/{name}.css"
        for name in (
            *("base", "head", "window", "tables", "views"),
            *("charts", "privacy", "columns", "phone", "outputs"),
        )
    ),
)
"""The parts of `page.css`, in the order in which they apply."""
_FILES: Final = (
    "icon.svg",
    "js/theme-choice.js",
    "vendor/uplot/uplot.iife.min.js",
    "vendor/uplot/LICENSE",
)
"""What the page loads as it stands, beside its styles and its script."""


@dataclass(frozen=True)
class Asset:
    """One file of the page: its path below `/page/`, which has its digest, or `index.html`."""

    name: str
    content_type: str
    body: bytes
    gzip_body: bytes
    digest: str

    @classmethod
    def of(cls, name: str, body: bytes) -> "Asset":
        """Return a file with the digest in its name: `page.css` becomes `page.0123456789.css`."""
        path, digest = PurePosixPath(name), hashlib.blake2b(body, digest_size=8).hexdigest()
        if name != "index.html":
            name = f"{path.stem}.{digest}{path.suffix}"
        return cls(name, _TYPES[path.suffix], body, gzip.compress(body, mtime=0), digest)


def load_assets() -> dict[str, Asset]:
    """Return what a browser loads by its name here; only `index.html` keeps its name there.

    A name says the content, so that browsers never ask again for what they have.
    """
    folder = files("ldpstream.agents.web.page")
    styles = b"\n".join(folder.joinpath(name).read_bytes() for name in _STYLES)
    script = bundle_modules(load_modules(), "js/main.js").encode()
    bodies = {"page.css": styles, "page.js": script}
    bodies |= {name: folder.joinpath(name).read_bytes() for name in _FILES}
    assets = {name: Asset.of(name, body) for name, body in bodies.items()}
    page = folder.joinpath("index.html").read_text("utf-8").replace("<!-- methods -->", _METHODS)
    for name, asset in assets.items():
        page = page.replace(f'"page/{name}"', f'"page/{asset.name}"')
    return assets | {"index.html": Asset.of("index.html", page.encode())}


def load_modules() -> dict[str, str]:
    """Return the texts of the page's modules by their paths, such as `js/main.js`."""
    return dict(_walk(files("ldpstream.agents.web.page").joinpath("js"), "js/"))


def _walk(folder: Traversable, prefix: str) -> Iterator[tuple[str, str]]:
    for entry in sorted(folder.iterdir(), key=lambda file: file.name):
        if entry.is_dir():
            yield from _walk(entry, f"{prefix}{entry.name}/")
        else:
            yield prefix + entry.name, entry.read_text("utf-8")
