"""The format of an answer, by parameter or Accept header."""

from typing import Final, Literal

from aiohttp import web

from ldpstream.agents.http.parameters import AnswerError

Format = Literal["json", "csv"]
CONTENT_TYPES: Final[dict[Format, str]] = {"json": "application/json", "csv": "text/csv"}


def wanted_format(request: web.Request) -> Format:
    """Return the format that the parameter `format` names, or else the one Accept prefers.

    Raises:
        AnswerError: 400, for an unknown format.
    """
    text = request.query.get("format")
    if text is None:
        # CSV if it is named and preferred to JSON; a wildcard means JSON.
        liked = {"text/csv": 0.0, "application/json": 0.0}
        for part in request.headers.get("Accept", "").split(","):
            kind, *parameters = (piece.strip().lower() for piece in part.split(";"))
            if kind in liked:
                given = (_quality(one) for one in parameters if one.startswith("q="))
                liked[kind] = max(given, default=1.0)
        return "csv" if liked["text/csv"] > liked["application/json"] else "json"
    if text == "json":
        return "json"
    if text == "csv":
        return "csv"
    raise AnswerError(400, f"format: expected json or csv, got {text[:40]!r}")


def _quality(parameter: str) -> float:
    try:
        return min(max(float(parameter.removeprefix("q=")), 0.0), 1.0)
    except ValueError:
        return 0.0
