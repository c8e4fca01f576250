"""Answers for monitoring, the same from worker, packer and gateway."""

from collections.abc import Sequence
from typing import Protocol

from aiohttp import web


class Exposed(Protocol):
    """Metrics that can be shown."""

    def exposition(self, *, accept: str = "") -> tuple[bytes, str]:
        """Return all metrics and their media type, in the format that an Accept header requests."""


def answer_metrics(request: web.Request, metrics: Exposed) -> web.Response:
    """Answer metrics, in the format that the request's Accept header asks for."""
    body, content_type = metrics.exposition(accept=request.headers.get("Accept", ""))
    return web.Response(body=body, headers={"Content-Type": content_type})


async def answer_health(_: web.Request) -> web.Response:
    """Answer that the process serves."""
    return web.json_response({"status": "ok"})


def answer_readiness(reasons: Sequence[str], *, told: bool = True) -> web.Response:
    """Answer whether the process does its work; say why not only if `told`."""
    answer = {"ready": not reasons, "reasons": [*reasons] if told else []}
    return web.json_response(answer, status=503 if reasons else 200)
