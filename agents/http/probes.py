"""Answers for monitoring, the same from worker, packer and gateway."""

from collections.abc import Sequence

from aiohttp import web

from ldpstream.agents.metrics.exposition import ProcessMetrics


def answer_metrics(request: web.Request, metrics: ProcessMetrics) -> web.Response:
    """Answer metrics, in the format that the request's Accept header asks for."""
    body, content_type = metrics.exposition(accept=request.headers.get("Accept", ""))
    return web.Response(body=body, headers={"Content-Type": content_type})


async def answer_health(_: web.Request) -> web.Response:
    """Answer that the process serves."""
    return web.json_response({"status": "ok"})


def answer_readiness(reasons: Sequence[str], *, explain: bool = True) -> web.Response:
    """Answer whether the process does its work; say why not, if `explain`."""
    answer = {"ready": not reasons, "reasons": [*reasons] if explain else []}
    return web.json_response(answer, status=503 if reasons else 200)
