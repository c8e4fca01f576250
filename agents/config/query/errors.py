"""Errors of queries and configurations: what was expected, and what was found."""

import json
import math
from typing import Final

from pydantic_core import PydanticCustomError

REFUSED: Final = "refused"
"""The type of pydantic's errors that `refused` makes; `problem` in their context is the text."""


def expected(what: str, got: object) -> str:
    """Return `expected WHAT, got GOT`, with `got` as TOML would write it."""
    return f"expected {what}, got {shown(got)}"


def shown(value: object) -> str:
    """Return a value as TOML would write it, shortened."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    written = json.dumps(value, ensure_ascii=False, default=str)
    # JSON does not escape all characters that end a line, such as U+0085 or U+2028.
    text = "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in written)
    return text if len(text) <= 60 else f"{text[:57]}..."


def refused(what: str, got: object) -> PydanticCustomError:
    """Return the error that a pydantic validator raises for `expected WHAT, got GOT`."""
    return PydanticCustomError(REFUSED, "{problem}", {"problem": expected(what, got)})
