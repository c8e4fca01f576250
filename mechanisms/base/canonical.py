"""Canonical JSON: equal documents give equal bytes, on every device and server."""

import json
import math
from typing import Final

MAX_TABLE_BYTES: Final = 1 << 20
"""Longer texts, and strategies that take more bytes as integers, are left out of documents."""
Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


def canonical_json(document: Json) -> bytes:
    r"""Return ASCII JSON with sorted keys and no spaces; floats in their shortest form.

    Raises:
        ValueError: for NaN and infinities, which JSON cannot write.

    >>> canonical_json({"b": 1.0, "a": "é"})
    b'{"a":"\\u00e9","b":1.0}'
    """
    text = json.dumps(
        document, ensure_ascii=True, sort_keys=True, separators=(",", ":"), allow_nan=False
    )
    return text.encode("ascii")


def json_number(number: float) -> Json:
    """Return a number that JSON can hold: infinity becomes the text "inf"."""
    return "inf" if math.isinf(number) else float(number)


def text_table(name: str, content: bytes) -> dict[str, Json]:
    """Return canonical JSON as a text, so that a device can hash its bytes unchanged."""
    return {name: content.decode("ascii")} if len(content) <= MAX_TABLE_BYTES else {}
