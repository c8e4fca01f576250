"""Run a gateway: its clients, topics, address, and shutdown."""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from ldpstream.agents.broker.connections import Connections
from ldpstream.agents.broker.patches.error_names import name_errors
from ldpstream.agents.broker.producer import NoIdempotenceError
from ldpstream.agents.broker.refusals import no_idempotence, not_permitted
from ldpstream.agents.config import CollectionConfig, Config, GatewayConfig
from ldpstream.agents.config.secret import Secret, SecretError
from ldpstream.agents.edge.gateway_app import GatewayMetrics, GatewayServices, build_gateway
from ldpstream.agents.edge.gateway_topics import NewestRounds, SourceTopics
from ldpstream.agents.edge.sender import Sender
from ldpstream.agents.edge.upload_keys import UploadKeys, UploadKeysError
from ldpstream.agents.edge.uploads import FRAME_BYTES, Uploads
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
from ldpstream.agents.web.requests import Access, TokenError
from ldpstream.agents.web.server import server_tls
from ldpstream.mechanisms.wire.frame import HEAD_BYTES, RUN_BYTES

FILE: Final = "gateway.sqlite"
"""The file of keys of accepted uploads, in `worker.data`."""
_HEAD_BYTES: Final = HEAD_BYTES + RUN_BYTES
"""Of a frame with one run."""

log = logging.getLogger(__name__)


def run_gateway(config: Config, *, verbose: bool = False) -> int:
    """Serve until SIGTERM or SIGINT, and return the exit code: 0, or 1 if it failed.

    Prints `ready URL` on standard output once it serves. May end the process (`run_and_leave`).
    """
    set_up_logging(verbose=verbose)
    name_errors()
    serving = partial(serve_gateway, config, announce=announce_ready)
    return run_and_leave(until_signalled(serving, config.kafka, refused=(UploadKeysError,)))


@dataclass(frozen=True, kw_only=True)
class GatewayAccess:
    """Access to uploads and to metrics, None if nobody may read these; the TLS context, if any."""

    tls: ssl.SSLContext | None
    uploads: Access
    metrics: Access | None


def check_gateway(config: Config) -> GatewayAccess:
    """Return who may do what, and how it is encrypted.

    Raises:
        HttpUnavailableError: naming the key, for an invalid token or file, and for an impossible
            `shuffle`.
    """
    own, worker = config.gateway, config.worker
    if own.shuffle > 1:
        _check_shuffle(config)
    tls = None
    if own.certificate is not None and own.key is not None:
        tls = server_tls(own.certificate, own.key, table="gateway")
    access = Access(
        local=is_loopback(own.http.rpartition(":")[0]), trusted_proxies=own.trusted_proxies
    )
    metrics: Access | None = None
    if worker.token is not None:
        metrics = _with_token(access, "worker.token", worker.token)
    elif worker.open_to_everybody or access.local:
        metrics = access
    uploads = access if own.token is None else _with_token(access, "gateway.token", own.token)
    return GatewayAccess(tls=tls, uploads=uploads, metrics=metrics)


def _check_shuffle(config: Config) -> None:
    """Refuse collections whose reports cannot be shuffled, or whose batches exceed a frame."""
    shuffle = config.gateway.shuffle
    for name, one in config.collections.items():
        for spec in (each.spec for each in (one, *one.accept)):
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


def _with_token(access: Access, path: str, token: Secret) -> Access:
    try:
        return replace(access, token=token.reveal().encode())
    except (SecretError, TokenError) as error:
        raise HttpUnavailableError(f"{path}: {error}") from error


def _fitting(config: Config) -> dict[str, CollectionConfig]:
    """Return the collections whose reports fit into an upload.

    Raises:
        HttpUnavailableError: if there is none.
    """
    limit = config.gateway.upload_bytes
    found, smallest = {}, []
    for name, one in config.collections.items():
        sizes = [_HEAD_BYTES + c.spec.report_bytes for c in (one, *one.accept)]
        if max(sizes) <= limit:
            found[name] = one
        else:
            smallest.append(max(sizes))
            log.warning(
                "%s is not served: a frame of one report has %d bytes, more than "
                "gateway.upload_bytes = %d", name, max(sizes), limit,
            )  # fmt: skip
    if not found:
        raise HttpUnavailableError(
            f"gateway.upload_bytes: expected at least {min(smallest)}, the size of a frame of one "
            f"report, got {limit}"
        )
    return found


async def serve_gateway(
    config: Config, stop: asyncio.Event, *, announce: Callable[[str], None]
) -> None:
    """Serve until `stop` is set, then finish accepted uploads; `announce` gets the URL.

    Raises:
        HttpUnavailableError: as `check_gateway`, and if the address cannot be used.
        BrokerUnavailableError: if the broker lacks a required feature.
        UploadKeysError: if the file of keys cannot be used.
        KafkaError: if the broker does not answer, or refuses.
    """
    checked, own = check_gateway(config), config.gateway
    collections = _fitting(config)
    connections = Connections(config.kafka)
    metrics = GatewayMetrics(list(collections))
    async with AsyncExitStack() as stack:
        remembered = stack.enter_context(
            UploadKeys(config.worker.data / FILE, most=own.remembered, keep_ms=own.remember_ms)
        )
        stack.push_async_callback(connections.close)
        opening = _open(stack, connections, config, collections, remembered, metrics)
        topics, uploads = await unless_stopped(opening, stop)
        served = GatewayServices(
            collections=collections,
            uploads=uploads,
            metrics=metrics,
            origins=own.origins,
            upload_bytes=own.upload_bytes,
            upload_access=checked.uploads,
            metrics_access=checked.metrics,
            rounds=NewestRounds(config.kafka),
            problems=topics.problems,
        )
        async with taking_uploads(served, own, tls=checked.tls) as url:
            announce(url)
            with suppress(StoppedError):
                await unless_stopped(topics.watch(), stop)
            # Tell new uploads to retry while accepted ones are finished.
            served.closing = True
            await uploads.drain()


async def _open(
    stack: AsyncExitStack,
    connections: Connections,
    config: Config,
    collections: Mapping[str, CollectionConfig],
    remembered: UploadKeys,
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
        remembered,
        config=config.gateway,
        reach=topics.there.__contains__,
        accepted=metrics.accepted,
    )
    return topics, await stack.enter_async_context(uploads)


@asynccontextmanager
async def taking_uploads(
    served: GatewayServices, config: GatewayConfig, *, tls: ssl.SSLContext | None
) -> AsyncIterator[str]:
    """Serve the gateway's application during a block, which gets the URL.

    Raises:
        HttpUnavailableError: if the address cannot be used.
    """
    bounds = Bounds(
        connections=config.connections,
        per_peer=config.connections_per_peer,
        trusted_proxies=config.trusted_proxies,
    )
    async with listen(
        build_gateway(served),
        address=config.http,
        bounds=bounds,
        tls=tls,
        setting="`http` in [gateway]",
        auto_decompress=False,
    ) as (url, limiter):
        served.connections = limiter.count
        yield url
