"""Running the HTTP application on an address of its own."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from aiohttp import web

from ldpstream.agents.config import WorkerConfig
from ldpstream.agents.http.access import Access, TokenError, is_loopback
from ldpstream.agents.http.app import build_http
from ldpstream.agents.http.door import Door, HttpUnavailableError
from ldpstream.agents.http.quiet import server_log
from ldpstream.agents.kafka.secret import Secret, SecretError
from ldpstream.agents.metrics import Metrics
from ldpstream.agents.pipeline.served import ServedPipeline

CONNECTIONS_LIMIT: Final = 500
"""Open at once: whoever may not read can open connections too, and a worker needs some itself."""
_IDLE_SECONDS: Final = 300.0
"""From an answer to the next request: longer than reverse proxies keep a connection."""
_SHUTDOWN_SECONDS: Final = 1.0


@asynccontextmanager
async def serve(
    pipeline: ServedPipeline,
    *,
    host: str = "127.0.0.1",
    port: int = 6066,
    metrics: Metrics | None = None,
    token: Secret | None = None,
    certificate: tuple[Path, Path] | None = None,
    open_to_everybody: bool = False,
) -> AsyncIterator[str]:
    """Serve a pipeline for the length of an `async with` block, which gets the URL.

    Port 0 is any free one. By default only this machine is served. An address that others reach
    needs a token, which every reader has to show, unless it is `open_to_everybody`. With a
    certificate and its key, files in PEM format, HTTPS is served.

    Raises:
        HttpUnavailableError: where the address is taken, not ours, or not allowed; where it needs a
            token, or token or certificate cannot be used.
    """
    access = reading_access(host, token, open_to_everybody=open_to_everybody)
    context = None if certificate is None else server_tls(*certificate)
    app, door = build_http(pipeline, metrics=metrics, access=access), Door(CONNECTIONS_LIMIT)
    app.middlewares.insert(0, door.watching())
    runner = web.AppRunner(
        app,
        access_log=None,
        logger=server_log(),
        handle_signals=False,
        shutdown_timeout=_SHUTDOWN_SECONDS,
        keepalive_timeout=_IDLE_SECONDS,
    )
    address = f"{host}:{port}"
    async with door.opened(runner, address=address, tls=context, table="worker") as url:
        yield url


def check_serving(worker: WorkerConfig) -> None:
    """Refuse an address that needs a token, and a token or files that cannot be used.

    Raises:
        HttpUnavailableError: as `serve` would.
    """
    host = worker.http.rpartition(":")[0]
    reading_access(host, worker.token, open_to_everybody=worker.open_to_everybody)
    if worker.certificate is not None and worker.key is not None:
        server_tls(worker.certificate, worker.key)


def reading_access(host: str, token: Secret | None, *, open_to_everybody: bool) -> Access:
    """Return who may read at an address.

    Raises:
        HttpUnavailableError: where others reach it and there is no token, or one that cannot be.
    """
    local = is_loopback(host)
    if token is None:
        if not (local or open_to_everybody):
            raise HttpUnavailableError(
                f"worker.token: expected a token, because others reach {host}: add "
                'token = { env = "NAME" } or { file = "PATH" } to [worker], serve 127.0.0.1, or '
                "let everybody read with open_to_everybody = true"
            )
        return Access(local=local)
    try:
        return Access(token=token.reveal().encode(), local=local)
    except (SecretError, TokenError) as error:
        raise HttpUnavailableError(f"worker.token: {error}") from error


def server_tls(certificate: Path, key: Path, *, table: str = "worker") -> ssl.SSLContext:
    """Return how a server with a certificate speaks TLS; `table` is where it is configured.

    Raises:
        HttpUnavailableError: where the files cannot be used.
    """
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
    # Otherwise OpenSSL would ask for one on the terminal.
    return ""
