"""Create Kafka clients from the `[kafka]` table: producer, readers, administration.

Every key of the table except `bootstrap` is a setting of the Kafka client under the client's own
name (`security_protocol`, `sasl_plain_username`, `session_timeout_ms`, ...). TLS files are given as
`ssl_cafile`, `ssl_certfile`, `ssl_keyfile` and `ssl_password`. `replication_factor` applies to
topics that ldpstream creates. `ldpstream.agents.config.client_options` checks the values.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from ldpstream.agents.broker.patches.bounded_fetches import BoundedConsumer
from ldpstream.agents.broker.unpacking import batch_bytes
from ldpstream.agents.config.client_options import (
    CONNECTION,
    CONSUMER,
    FILES,
    METADATA_MS,
    PRODUCER,
    ClientOptionError,
    protocol,
    settled,
)
from ldpstream.agents.config.errors import expected
from ldpstream.agents.config.hosts import BROKERS_EXPECTED, are_brokers

# A record of the state is below 1 MB; a batch of them may be larger.
_MAX_REQUEST_BYTES: Final = 4 << 20
_MAX_BATCH_BYTES: Final = 1 << 18
# An answer takes three times its size while it is parsed; a larger batch is still returned.
_READER_BYTES: Final = 1 << 20
_ANSWER_BYTES: Final = 8 << 20
# How often a client goes through all of its partitions when nothing happens. Any event (an answer,
# a seek, an unknown leader) makes it do so at once.
_LOOK_MS: Final = 1_000
_STOP_SECONDS: Final = 2.0


def producer(bootstrap: str, options: Mapping[str, Any]) -> AIOKafkaProducer:
    """Return an unstarted producer: acknowledged by all replicas, idempotent, lz4.

    Must be called in a running event loop, like all functions here.
    """
    chosen = {
        "enable_idempotence": True,
        "compression_type": "lz4",
        "max_request_size": _MAX_REQUEST_BYTES,
        "max_batch_size": max_batch_bytes(options),
        **_producing(options),
    }
    return AIOKafkaProducer(acks="all", **connection(bootstrap, options), **chosen)


def reader(
    bootstrap: str, options: Mapping[str, Any], *, committed_only: bool, wait_ms: int = 500
) -> AIOKafkaConsumer:
    """Return an unstarted consumer without a group.

    It never commits, and raises an error if its position is outside the log instead of jumping.
    `committed_only` skips records of transactions that are open or were aborted. `wait_ms` is how
    long the broker may delay an empty answer.
    """
    chosen = {
        "max_partition_fetch_bytes": _READER_BYTES,
        "consumer_timeout_ms": _LOOK_MS,
        "fetch_max_bytes": _ANSWER_BYTES,
        **_chosen(options, CONSUMER),
    }
    return BoundedConsumer(
        most_bytes=batch_bytes(options),
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="none",
        fetch_max_wait_ms=wait_ms,
        isolation_level="read_committed" if committed_only else "read_uncommitted",
        **connection(bootstrap, options),
        **chosen,
    )


def admin(bootstrap: str, options: Mapping[str, Any]) -> AIOKafkaAdminClient:
    """Return an unstarted administration client."""
    return AIOKafkaAdminClient(**connection(bootstrap, options))


async def stop_client(stop: Callable[[], Awaitable[None]]) -> None:
    """Stop a client, ignoring the broker's errors; if it takes too long, leave it.

    It stops in a task of its own: while the broker is away, aiokafka cancels the task that stops a
    client, and whoever waits here must still be able to tell that from being cancelled.
    """
    stopping = asyncio.ensure_future(stop())
    try:
        await asyncio.wait([stopping], timeout=_STOP_SECONDS)
    finally:
        stopping.cancel()
    await asyncio.wait([stopping], timeout=_STOP_SECONDS)
    if stopping.done() and not stopping.cancelled():
        with suppress(KafkaError):
            stopping.result()


def max_batch_bytes(options: Mapping[str, Any]) -> int:
    """Return the most that a producer puts into a batch, unless a single record is larger."""
    return int(options.get("max_batch_size", _MAX_BATCH_BYTES))


def replication_factor(options: Mapping[str, Any], *, brokers: int) -> int:
    """Return the replication factor for new topics: as configured, or at most three."""
    return int(options.get("replication_factor", max(1, min(3, brokers))))


def _chosen(options: Mapping[str, Any], names: frozenset[str]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name in names}


def _producing(options: Mapping[str, Any]) -> dict[str, Any]:
    chosen = _chosen(options, PRODUCER)
    if chosen.get("compression_type") == "none":
        chosen["compression_type"] = None
    return chosen


def connection(bootstrap: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of every aiokafka client, secrets included: never log or print them."""
    checked_options = settled(options)
    if not are_brokers(bootstrap):
        raise ClientOptionError(f"kafka.bootstrap: {expected(BROKERS_EXPECTED, bootstrap)}")
    return {
        "bootstrap_servers": [host.strip() for host in bootstrap.split(",")],
        "ssl_context": tls_context(checked_options),
        "metadata_max_age_ms": METADATA_MS,
        **_chosen(checked_options, CONNECTION),
    }


def tls_context(options: Mapping[str, Any]) -> ssl.SSLContext | None:
    """Return a context that verifies the broker's name and certificate; None without TLS.

    Without `ssl_cafile` the system's certificates are trusted.
    """
    if not protocol(options).endswith("SSL"):
        return None
    for option in sorted(FILES & options.keys()):
        _check_readable(option, options[option])
    try:
        context = ssl.create_default_context(cafile=options.get("ssl_cafile"))
    except ssl.SSLError as error:
        file = options["ssl_cafile"]
        raise ClientOptionError(
            f"kafka.ssl_cafile: expected certificates in PEM format in {file}"
        ) from error
    if "ssl_certfile" in options:
        _load_own(context, options)
    return context


def _check_readable(option: str, file: str) -> None:
    try:
        with Path(file).open("rb"):
            pass
    except OSError as error:
        raise ClientOptionError(f"kafka.{option}: cannot read {file}: {error.strerror}") from error


def _load_own(context: ssl.SSLContext, options: Mapping[str, Any]) -> None:
    # Without a password OpenSSL would prompt for one, and the worker would hang.
    password = options.get("ssl_password", "")
    try:
        context.load_cert_chain(
            options["ssl_certfile"], options.get("ssl_keyfile"), lambda: password
        )
    except ssl.SSLError as error:
        holds = options.get("ssl_keyfile", options["ssl_certfile"])
        if error.reason == "KEY_VALUES_MISMATCH":
            problem = f"expected the key of the certificate in {options['ssl_certfile']}"
        else:
            problem = (
                f"expected a certificate and its private key in PEM format, the key in {holds}, "
                "and kafka.ssl_password if the key is encrypted"
            )
        raise ClientOptionError(f"kafka.ssl_keyfile: {problem}") from error
