"""Run a gateway: its clients, topics, address, and shutdown."""

import asyncio
import gc
import logging
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import Final, NamedTuple

from ldpstream.agents.broker.connections import Connections
from ldpstream.agents.broker.patches.error_names import name_errors
from ldpstream.agents.broker.producer import NoIdempotenceError
from ldpstream.agents.broker.refusals import no_idempotence, not_permitted
from ldpstream.agents.config import CollectionConfig, Config, GatewayConfig
from ldpstream.agents.edge.gateway_app import (
    GatewayMetrics,
    GatewayServices,
    build_gateway,
    direct_uploads,
)
from ldpstream.agents.edge.gateway_topics import NewestRounds, SourceTopics
from ldpstream.agents.edge.sender import Sender
from ldpstream.agents.edge.upload_batch import FRAME_BYTES
from ldpstream.agents.edge.upload_keys import UploadKeys, UploadKeysError
from ldpstream.agents.edge.uploads import Uploads
from ldpstream.agents.engine.process import (
    HttpUnavailableError,
    StoppedError,
    announce_ready,
    run_and_leave,
    set_up_logging,
    unless_stopped,
    until_signalled,
)
from ldpstream.agents.web.addresses import is_loopback
from ldpstream.agents.web.connection_limits import Bounds
from ldpstream.agents.web.listener import listen
from ldpstream.agents.web.requests import Access
from ldpstream.agents.web.server import server_tls, with_token
from ldpstream.mechanisms.wire.frame import HEAD_BYTES, RUN_BYTES

FILE: Final = "gateway.sqlite"
"""The file of keys of accepted uploads, in `worker.data`."""
_HEAD_BYTES: Final = HEAD_BYTES + RUN_BYTES
"""Of a frame with one run."""

_COLLECTED_AFTER: Final = 10_000
"""New objects between garbage collections."""

log = logging.getLogger(__name__)


def run_gateway(config: Config, *, verbose: bool = False) -> int:
    """Serve until SIGTERM or SIGINT, and return the exit code: 0, or 1 if it failed.

    Prints `ready URL` on standard output once it serves. May end the process (`run_and_leave`).
    """
    set_up_logging(verbose=verbose)
    name_errors()
    serving = partial(serve_gateway, config, announce=announce_ready)
    return run_and_leave(until_signalled(serving, config.kafka, refused=(UploadKeysError,)))


class GatewayAccess(NamedTuple):
    """Who may upload, who may read metrics (None: nobody), and how it is encrypted."""

    uploads: Access
    metrics: Access | None
    tls: ssl.SSLContext | None


def check_gateway(config: Config) -> GatewayAccess:
    """Return who may use a gateway.

    Raises:
        HttpUnavailableError: naming the key, for an invalid token or file, and for an impossible
            `shuffle`.
    """
    gateway, worker = config.gateway, config.worker
    if gateway.shuffle > 1:
        _check_shuffle(config)
    tls = server_tls(gateway, "gateway")
    access = Access(
        local=is_loopback(gateway.http.rpartition(":")[0]), trusted_proxies=gateway.trusted_proxies
    )
    metrics: Access | None = None
    if worker.token is not None:
        metrics = with_token(access, "worker.token", worker.token)
    elif worker.open_to_everybody or access.local:
        metrics = access
    uploads = (
        access if gateway.token is None else with_token(access, "gateway.token", gateway.token)
    )
    return GatewayAccess(uploads, metrics, tls)


def _check_shuffle(config: Config) -> None:
    """Refuse collections whose reports cannot be shuffled, or whose batches exceed a frame."""
    shuffle = config.gateway.shuffle
    for name, collection in config.collections.items():
        for spec in (each.spec for each in (collection, *collection.accept)):
            if spec.one_report is not None:
                raise HttpUnavailableError(
                    f"gateway.shuffle: expected 0, got {shuffle}: reports of {name} contain their "
                    "devices' tokens (one_report)"
                )
            most = (FRAME_BYTES - _HEAD_BYTES) // (2 * spec.report_bytes)
            if shuffle > most:
                raise HttpUnavailableError(
                    f"gateway.shuffle: expected at most {most}, got {shuffle}: a batch of reports "
                    f"of {name}, of {spec.report_bytes} bytes each, must fit into one frame"
                )


def _fitting(config: Config) -> dict[str, CollectionConfig]:
    """Return the collections whose reports fit into an upload."""
    limit = config.gateway.upload_bytes
    collections, smallest = {}, []
    for name, collection in config.collections.items():
        sizes = [_HEAD_BYTES + c.spec.report_bytes for c in (collection, *collection.accept)]
        if max(sizes) <= limit:
            collections[name] = collection
        else:
            smallest.append(max(sizes))
            log.warning(
                "%s is not served: a frame of one report has %d bytes, more than "
                "gateway.upload_bytes = %d", name, max(sizes), limit,
            )  # fmt: skip
    if not collections:
        raise HttpUnavailableError(
            f"gateway.upload_bytes: expected at least {min(smallest)}, the size of a frame of one "
            f"report, got {limit}"
        )
    return collections


async def serve_gateway(
    config: Config, stop: asyncio.Event, *, announce: Callable[[str], None]
) -> None:
    """Serve until `stop` is set, then finish accepted uploads; `announce` gets the URL."""
    access = check_gateway(config)
    gateway = config.gateway
    collections = _fitting(config)
    connections = Connections(config.kafka)
    metrics = GatewayMetrics(list(collections))
    async with AsyncExitStack() as stack:
        upload_keys = stack.enter_context(
            UploadKeys(
                config.worker.data / FILE, most=gateway.remembered, keep_ms=gateway.remember_ms
            )
        )
        stack.push_async_callback(connections.close)
        opening = _open(stack, connections, config, collections, upload_keys, metrics)
        topics, uploads = await unless_stopped(opening, stop)
        services = GatewayServices(
            collections=collections,
            uploads=uploads,
            metrics=metrics,
            origins=gateway.origins,
            upload_bytes=gateway.upload_bytes,
            upload_access=access.uploads,
            metrics_access=access.metrics,
            rounds=NewestRounds(config.kafka),
            problems=topics.problems,
        )
        # All objects so far are permanent, and uploads leave no cycles: garbage collection would
        # look at those that wait again and again.
        gc.freeze()
        gc.set_threshold(_COLLECTED_AFTER)
        async with taking_uploads(services, gateway, tls=access.tls) as url:
            announce(url)
            with suppress(StoppedError):
                await unless_stopped(topics.watch(), stop)
            # Tell new uploads to retry while accepted ones are finished.
            services.closing = True
            await uploads.drain()


async def _open(
    stack: AsyncExitStack,
    connections: Connections,
    config: Config,
    collections: Mapping[str, CollectionConfig],
    upload_keys: UploadKeys,
    metrics: GatewayMetrics,
) -> tuple[SourceTopics, Uploads]:
    """Connect, check the topics, and return them with the sender of uploads."""
    topics = SourceTopics(await connections.admin(), list(collections.values()))
    await topics.refresh()
    if topics.refused:
        raise not_permitted(config.kafka, topics.refused)
    first = next(iter(collections.values())).spec
    try:
        sender = await stack.enter_async_context(
            Sender(first, config.kafka.bootstrap, options=config.kafka.options)
        )
    except NoIdempotenceError as error:
        raise no_idempotence(config.kafka) from error
    uploads = Uploads(
        collections,
        sender,
        upload_keys,
        config=config.gateway,
        reach=topics.writable.__contains__,
        accepted=metrics.accepted,
    )
    return topics, await stack.enter_async_context(uploads)


@asynccontextmanager
async def taking_uploads(
    services: GatewayServices, config: GatewayConfig, *, tls: ssl.SSLContext | None
) -> AsyncIterator[str]:
    """Serve the gateway's application during a block, which gets the URL."""
    bounds = Bounds(
        connections=config.connections,
        per_peer=config.connections_per_peer,
        trusted_proxies=config.trusted_proxies,
    )
    async with listen(
        build_gateway(services),
        address=config.http,
        bounds=bounds,
        tls=tls,
        setting="`http` in [gateway]",
        auto_decompress=False,
        direct=direct_uploads(services),
    ) as (url, limiter):
        services.connections = limiter.count
        yield url
