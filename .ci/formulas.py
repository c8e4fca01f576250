"""Set the site's formulas as MathML, which browsers show without a script: a hook of MkDocs.

`pymdownx.arithmatex` marks them. A command that the converter does not know stops the build. The
font comes with `ziamath`: most machines have none for mathematics, without which indices are on no
line of their own.
"""

import re
from html import unescape
from pathlib import Path
from typing import Final

import ziamath
from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

_MARKED: Final = re.compile(
    r'<(span|div) class="arithmatex">\\[(\[](.+?)\\[)\]]</\1>([,.;:)]*)', re.DOTALL
)
_SPACING: Final = (
    (
        re.compile(r"<mo[^>]*>(&#x0007C;|&#x02016;)<"),
        r'<mo lspace="0" rspace="0" stretchy="false">\1<',
    ),
    (re.compile(r"<mo>(&#x0221E;)</mo>"), r"<mi>\1</mi>"),
    (re.compile(r"<mi>&#x0007E;</mi>"), r"<mo>&#x0223C;</mo>"),
    # A sign after an opening bracket, a comma or a relation belongs to what follows.
    (
        re.compile(
            r"((?:\[|&#x000(?:28|2C|3D);|&#x0226[45];)</mo>(?:<mspace[^>]*>)?)<mo>(&#x02212;|&#x0002B;)"
        ),
        r'\1<mo form="prefix">\2',
    ),
    (re.compile(r"<(m[io])[^>]*>([A-Za-z]{2,})</\1>(?=<mo[^>]*>(?:&#x00028;|\())"), r"<mi>\2</mi>"),
    (
        re.compile(r"<(m[io])[^>]*>([A-Za-z]{2,})</\1>"),
        r'<mo lspace="0.1em" rspace="0.17em">\2</mo>',
    ),
    (re.compile(r'<mo lspace="[^>]*>mod<'), r'<mo lspace="0.27em" rspace="0.27em">mod<'),
)
"""Where the converter leaves it to a browser to guess, which guesses wrong."""
_FONT: Final = Path(ziamath.__file__).parent / "fonts" / "STIXTwoMath-Regular.ttf"
_STYLE: Final = f"""\
@font-face {{ font-family: "STIX Two Math"; src: local("STIX Two Math"), url("{_FONT.name}"); }}
math {{ font-family: "STIX Two Math", math; font-size: 1.1em; }}
span.arithmatex {{ white-space: nowrap; }}
"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the style that `extra_css` names, and its font."""
    files.append(File.generated(config, "assets/formulas.css", content=_STYLE))
    files.append(File.generated(config, f"assets/{_FONT.name}", abs_src_path=str(_FONT)))
    return files


def on_page_content(html: str, **_: object) -> str:
    """Return the page with its formulas set."""
    return _MARKED.sub(_set, html)


def _set(marked: re.Match[str]) -> str:
    element, formula, after = marked[1], unescape(marked[2]).strip(), marked[3]
    mathml = convert(formula, display="block" if element == "div" else "inline")
    if "\\" in mathml or "<mi>&</mi>" in mathml:
        raise ValueError(f"no MathML for all of {formula}")
    for pattern, better in _SPACING:
        mathml = pattern.sub(better, mathml)
    return f'<{element} class="arithmatex">{mathml}{after}</{element}>'
