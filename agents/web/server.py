"""Run the HTTP application on an address of its own."""

import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from ldpstream.agents.broker.shards import Shards
from ldpstream.agents.config import WorkerConfig
from ldpstream.agents.config.secret import Secret, SecretError
from ldpstream.agents.engine.metrics import Metrics
from ldpstream.agents.engine.pipeline import Pipeline
from ldpstream.agents.engine.process import HttpUnavailableError
from ldpstream.agents.web.addresses import Network, is_loopback
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
    pipeline: Pipeline,
    *,
    host: str = "127.0.0.1",
    port: int = 6066,
    metrics: Metrics | None = None,
    token: Secret | None = None,
    certificate: tuple[Path, Path] | None = None,
    open_to_everybody: bool = False,
    trusted_proxies: Sequence[Network] = (),
    frame_ancestors: Sequence[str] = (),
    shards: Shards | None = None,
) -> AsyncIterator[str]:
    """Serve a pipeline during an `async with` block, which gets the URL.

    Port 0 takes any free one. By default only this machine can reach it. Any other address needs a
    token, which every reader must send, unless it is `open_to_everybody`. With a certificate and
    its key, files in PEM format, it serves HTTPS. The header `X-Forwarded-For` is believed from
    `trusted_proxies`. Pages of `frame_ancestors` may show `/?embed=1` in a frame. Requests about
    collections of other `shards` are forwarded.

    Raises:
        HttpUnavailableError: where the address cannot be used or needs a token; where the token or
            the certificate is invalid.
    """
    access = reading_access(
        host, token, open_to_everybody=open_to_everybody, trusted_proxies=trusted_proxies
    )
    bounds = Bounds(
        connections=CONNECTIONS_LIMIT,
        per_peer=PEER_CONNECTIONS_LIMIT,
        trusted_proxies=tuple(trusted_proxies),
    )
    app = build_http(
        pipeline, metrics=metrics, access=access, shards=shards, frame_ancestors=frame_ancestors
    )
    app.cleanup_ctx.append(run_home_points)
    async with listen(
        app,
        address=f"{host}:{port}",
        bounds=bounds,
        tls=None if certificate is None else server_tls(*certificate),
        setting="`http` in [worker]",
    ) as (url, _):
        yield url


def check_serving(worker: WorkerConfig) -> None:
    """Refuse an address that needs a token, and an invalid token or certificate."""
    reading_access(
        worker.http.rpartition(":")[0], worker.token, open_to_everybody=worker.open_to_everybody
    )
    if worker.certificate is not None and worker.key is not None:
        server_tls(worker.certificate, worker.key)


def reading_access(
    host: str,
    token: Secret | None,
    *,
    open_to_everybody: bool,
    trusted_proxies: Sequence[Network] = (),
) -> Access:
    """Return who may read at an address."""
    access = Access(local=is_loopback(host), trusted_proxies=tuple(trusted_proxies))
    if token is None:
        if not (access.local or open_to_everybody):
            raise HttpUnavailableError(
                f"worker.token: expected a token, because others can reach {host}: add "
                'token = { env = "NAME" } or { file = "PATH" } to [worker], serve 127.0.0.1, or '
                "let everybody read with open_to_everybody = true"
            )
        return access
    try:
        return replace(access, token=token.reveal().encode())
    except (SecretError, TokenError) as error:
        raise HttpUnavailableError(f"worker.token: {error}") from error


def server_tls(certificate: Path, key: Path, *, table: str = "worker") -> ssl.SSLContext:
    """Return the TLS context of a server; `table` is where its certificate is configured."""
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
