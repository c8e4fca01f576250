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

_MARKED: Final = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.+?)\\[)\]]</\1>', re.DOTALL)
_FONT: Final = Path(ziamath.__file__).parent / "fonts" / "STIXTwoMath-Regular.ttf"
_STYLE: Final = f"""\
@font-face {{ font-family: "STIX Two Math"; src: local("STIX Two Math"), url("{_FONT.name}"); }}
math {{ font-family: "STIX Two Math", math; font-size: 1.1em; }}
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
    element, formula = marked[1], unescape(marked[2]).strip()
    mathml = convert(formula, display="block" if element == "div" else "inline")
    if "\\" in mathml or "<mi>&</mi>" in mathml:
        raise ValueError(f"no MathML for all of {formula}")
    return f'<{element} class="arithmatex">{mathml}</{element}>'
