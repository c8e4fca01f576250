"""Run the HTTP application on an address of its own."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

from ldpstream.agents.broker.shards import Shards
from ldpstream.agents.config import WorkerConfig
from ldpstream.agents.config.secret import Secret, SecretError
from ldpstream.agents.config.serving import ServingTable
from ldpstream.agents.engine.pipeline import Pipeline
from ldpstream.agents.engine.process import HttpUnavailableError
from ldpstream.agents.web.addresses import is_loopback
from ldpstream.agents.web.app import build_http
from ldpstream.agents.web.connection_limits import Bounds
from ldpstream.agents.web.home_points import run_home_points
from ldpstream.agents.web.listener import listen
from ldpstream.agents.web.requests import Access, TokenError

CONNECTIONS_LIMIT: Final = 500
"""The most open connections: anybody can open some, and a worker needs files itself."""
PEER_CONNECTIONS_LIMIT: Final = 200
"""The most of one address; behind trusted proxies, concurrent requests of one client."""


@asynccontextmanager
async def serve(
    pipeline: Pipeline, worker: WorkerConfig, *, shards: Shards | None = None
) -> AsyncIterator[str]:
    """Serve a pipeline during an `async with` block as `[worker]` says; the block gets the URL.

    Requests about collections of other `shards` are forwarded.

    Raises:
        HttpUnavailableError: where the address cannot be used or needs a token; where the token or
            the certificate is invalid.
    """
    access, tls = check_serving(worker)
    bounds = Bounds(
        connections=CONNECTIONS_LIMIT,
        per_peer=PEER_CONNECTIONS_LIMIT,
        trusted_proxies=worker.trusted_proxies,
    )
    app = build_http(pipeline, access=access, shards=shards, frame_ancestors=worker.frame_ancestors)
    app.cleanup_ctx.append(run_home_points)
    async with listen(
        app, address=worker.http, bounds=bounds, tls=tls, setting="`http` in [worker]"
    ) as (url, _):
        yield url


def check_serving(worker: WorkerConfig) -> tuple[Access, ssl.SSLContext | None]:
    """Return who may read, and how it is encrypted.

    Raises:
        HttpUnavailableError: for an address that needs a token, and an invalid token or
            certificate.
    """
    host = worker.http.rpartition(":")[0]
    access = Access(local=is_loopback(host), trusted_proxies=worker.trusted_proxies)
    if worker.token is not None:
        access = with_token(access, "worker.token", worker.token)
    elif not (access.local or worker.open_to_everybody):
        raise HttpUnavailableError(
            f"worker.token: expected a token, because others can reach {host}: add "
            'token = { env = "NAME" } or { file = "PATH" } to [worker], serve 127.0.0.1, or '
            "let everybody read with open_to_everybody = true"
        )
    return access, server_tls(worker, "worker")


def with_token(access: Access, path: str, token: Secret) -> Access:
    """Return the same access, for who has the token that a key of the configuration names."""
    try:
        return replace(access, token=token.reveal().encode())
    except (SecretError, TokenError) as error:
        raise HttpUnavailableError(f"{path}: {error}") from error


def server_tls(serving: ServingTable, table: str) -> ssl.SSLContext | None:
    """Return the TLS context of a server, None without a certificate; `table` is its table."""
    certificate, key = serving.certificate, serving.key
    if certificate is None or key is None:
        return None
    for name, file in (("certificate", certificate), ("key", key)):
        try:
            with file.open("rb"):
                pass
        except OSError as error:
            raise HttpUnavailableError(
                f"{table}.{name}: cannot read {file}: {error.strerror}"
            ) from error
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
    except (OSError, ValueError) as error:
        raise HttpUnavailableError(
            f"{table}.certificate, {table}.key: expected a chain and its unencrypted key in PEM "
            f"format, got {certificate} and {key}"
        ) from error
    return context


def _no_password() -> str:
    # Without a password OpenSSL would ask for one on the terminal.
    return ""
