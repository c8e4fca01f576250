"""Answers for monitoring, the same from worker and gateway."""

from collections.abc import Sequence
from typing import Final

from aiohttp import web

from ldpstream.agents.engine.metrics.exposition import ProcessMetrics

_COMPRESSED_ELSEWHERE_BYTES: Final = 16 << 10
"""Longer answers are compressed in another thread than that of the event loop."""


def answer_metrics(request: web.Request, metrics: ProcessMetrics) -> web.Response:
    """Answer metrics, in the format and compression that the request's headers ask for.

    Parameters `name[]` limit the answer to these names, as Prometheus' own clients do.
    """
    body, content_type = metrics.exposition(
        accept=request.headers.get("Accept", ""), names=request.query.getall("name[]", [])
    )
    answer = web.Response(
        body=body,
        headers={"Content-Type": content_type, "Vary": "Accept, Accept-Encoding"},
        zlib_executor_size=_COMPRESSED_ELSEWHERE_BYTES,
    )
    answer.enable_compression()
    return answer


async def answer_health(_: web.Request) -> web.Response:
    """Answer that the process serves."""
    return web.json_response({"status": "ok"})


def answer_readiness(reasons: Sequence[str], *, explain: bool = True) -> web.Response:
    """Answer whether the process does its work; say why not, if `explain`."""
    answer = {"ready": not reasons, "reasons": [*reasons] if explain else []}
    return web.json_response(answer, status=503 if reasons else 200)
