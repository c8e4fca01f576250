"""The HTTP side of a worker: JSON, metrics and a live page, all read-only.

`build_http` makes an aiohttp application that can be mounted anywhere; `serve` runs it by itself.
What a handler calls refuses a request by an `AnswerError`, with 503 where a replica is behind or
too many are waiting.
"""

from ldpstream.agents.engine.process import HttpUnavailableError
from ldpstream.agents.web.app import build_http
from ldpstream.agents.web.server import check_serving, serve

__all__ = ["HttpUnavailableError", "build_http", "check_serving", "serve"]
