"""Canonical JSON: equal documents give equal bytes, on every device and server."""

import json
import math

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
