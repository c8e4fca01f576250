"""Listen for uploads."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ldpstream.agents.config import GatewayConfig
from ldpstream.agents.gateway.app import Served, build_gateway
from ldpstream.agents.http.connection import Bounds
from ldpstream.agents.http.listening import listening


@asynccontextmanager
async def taking_uploads(
    served: Served, config: GatewayConfig, *, tls: ssl.SSLContext | None
) -> AsyncIterator[str]:
    """Serve the gateway's application for the duration of a block, which gets the URL.

    Raises:
        HttpUnavailableError: if the address cannot be listened on.
    """
    bounds = Bounds(
        connections=config.connections,
        per_peer=config.connections_per_peer,
        trusted_proxies=config.trusted_proxies,
    )
    async with listening(
        build_gateway(served),
        address=config.http,
        bounds=bounds,
        tls=tls,
        setting="`http` in [gateway]",
        auto_decompress=False,
    ) as (url, limiter):
        served.connections = limiter.count
        yield url
