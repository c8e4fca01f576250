"""Keys of the objects that the application keeps for its handlers."""

import asyncio
from typing import Final

from aiohttp import web

from ldpstream.agents.http.access import Access
from ldpstream.agents.http.certificates import Certificates
from ldpstream.agents.http.compute_queue import ComputeQueues
from ldpstream.agents.http.feed import Feeds
from ldpstream.agents.http.receiving import Bodies
from ldpstream.agents.metrics import Metrics
from ldpstream.agents.served.served import ServedPipeline
from ldpstream.agents.served.shards import Shards

PIPELINE: Final = web.AppKey("pipeline", ServedPipeline)
METRICS: Final = web.AppKey("metrics", Metrics)
QUEUES: Final = web.AppKey("queues", ComputeQueues)
DESCRIBING: Final = web.AppKey("describing", asyncio.Lock)
CERTIFICATES: Final = web.AppKey("certificates", Certificates)
ACCESS: Final = web.AppKey("access", Access)
SHARDS: Final = web.AppKey("shards", Shards)
"""Set only if there are other shards."""
BODIES: Final = web.AppKey("bodies", Bodies)
FEEDS: Final = web.AppKey("feeds", Feeds)
