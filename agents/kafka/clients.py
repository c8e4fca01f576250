"""Kafka clients made from the `[kafka]` table: producer, readers, administration.

Every key of the table but `bootstrap` is a setting of the Kafka client under the client's own name
(`security_protocol`, `sasl_plain_username`, `session_timeout_ms`, ...). TLS files are given as
`ssl_cafile`, `ssl_certfile`, `ssl_keyfile` and `ssl_password`; `replication_factor` is for the
topics that are created. What they may hold is checked by `ldpstream.agents.config.client_options`.
"""

from collections.abc import Mapping
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient

from ldpstream.agents.config.client_options import (
    CONNECTION,
    CONSUMER,
    GROUP,
    PRODUCER,
    ClientOptionError,
    settled,
)
from ldpstream.agents.config.tls import tls_context
from ldpstream.agents.kafka.unpacking import BoundedConsumer, batch_bytes

__all__ = [
    "ClientOptionError",
    "admin",
    "connection",
    "member",
    "producer",
    "reader",
    "replication_factor",
]

# A record of state stays below 1 MB; a batch of them may be larger.
_MAX_REQUEST_BYTES: Final = 4 << 20
# Readers of committed records wait behind a transaction that a process has left open.
_TRANSACTION_MS: Final = 30_000
# An answer is held three times over while it is taken apart; a longer batch comes all the same.
_READER_BYTES: Final = 1 << 20
_MEMBER_BYTES: Final = 4 << 20


def producer(
    bootstrap: str, options: Mapping[str, Any], *, transactional_id: str | None = None
) -> AIOKafkaProducer:
    """Return a producer that is not started: acknowledged by all replicas, idempotent, lz4.

    With a `transactional_id` it sends in transactions; starting it ends the one that another
    producer of the same id has left open, and keeps that producer from ever committing it.

    Must be called inside a running event loop, as all functions here.

    Raises:
        ClientOptionError: for an option that no client knows.
    """
    chosen = {
        "enable_idempotence": True,
        "compression_type": "lz4",
        "max_request_size": _MAX_REQUEST_BYTES,
        "max_batch_size": 1 << 18,
        **_producing(options),
    }
    if transactional_id is not None:
        chosen |= {
            "transactional_id": transactional_id,
            "transaction_timeout_ms": _TRANSACTION_MS,
        }
    return AIOKafkaProducer(acks="all", **connection(bootstrap, options), **chosen)


def reader(
    bootstrap: str, options: Mapping[str, Any], *, committed_only: bool, wait_ms: int = 500
) -> AIOKafkaConsumer:
    """Return a consumer without a group that is not started.

    It never commits, and raises where its position is outside the log instead of jumping.
    `committed_only` leaves out records of transactions that are open or were aborted; `wait_ms` is
    how long the broker may hold back an empty answer.

    Raises:
        ClientOptionError: for an option that no client knows.
    """
    chosen = {"max_partition_fetch_bytes": _READER_BYTES, **_chosen(options, CONSUMER)}
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


def member(
    bootstrap: str, options: Mapping[str, Any], *, group_id: str, wait_ms: int, min_bytes: int
) -> AIOKafkaConsumer:
    """Return a consumer that shares topics with its group, and is not started.

    It reads committed records only, never commits by itself, and raises where its position is
    outside the log, or not known. The broker may hold back an answer below `min_bytes` for
    `wait_ms`.

    Raises:
        ClientOptionError: for an option that no client knows.
    """
    chosen = {"max_partition_fetch_bytes": _MEMBER_BYTES, **_chosen(options, CONSUMER | GROUP)}
    return BoundedConsumer(
        most_bytes=batch_bytes(options),
        group_id=group_id,
        enable_auto_commit=False,
        auto_offset_reset="none",
        fetch_max_wait_ms=wait_ms,
        fetch_min_bytes=min_bytes,
        isolation_level="read_committed",
        **connection(bootstrap, options),
        **chosen,
    )


def admin(bootstrap: str, options: Mapping[str, Any]) -> AIOKafkaAdminClient:
    """Return an administration client that is not started.

    Raises:
        ClientOptionError: for an option that no client knows.
    """
    return AIOKafkaAdminClient(**connection(bootstrap, options))


def replication_factor(options: Mapping[str, Any], *, brokers: int) -> int:
    """Return the replication factor for topics we create: as configured, or up to three."""
    return int(options.get("replication_factor", max(1, min(3, brokers))))


def _chosen(options: Mapping[str, Any], names: frozenset[str]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name in names}


def _producing(options: Mapping[str, Any]) -> dict[str, Any]:
    chosen = _chosen(options, PRODUCER)
    if chosen.get("compression_type") == "none":
        chosen["compression_type"] = None
    return chosen


def connection(bootstrap: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what every aiokafka client takes, secrets included: not for showing.

    Raises:
        ClientOptionError: as all functions here.
    """
    known = settled(options)
    return {
        "bootstrap_servers": [host.strip() for host in bootstrap.split(",")],
        "ssl_context": tls_context(known),
        **_chosen(known, CONNECTION),
    }
