"""Kafka clients made from the `[kafka]` table: producer, readers, administration, Faust settings.

Every key of the table but `bootstrap` is a setting of the Kafka client under the client's own name
(`security_protocol`, `sasl_plain_username`, `session_timeout_ms`, ...). TLS files are given as
`ssl_cafile`, `ssl_certfile`, `ssl_keyfile` and `ssl_password`; `replication_factor` is for the
topics that are created. What they may hold is checked by `ldpstream.agents.client_options`.
"""

from collections.abc import Mapping
from typing import Any, Final

import faust
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from faust.types.auth import CredentialsT

from ldpstream.agents.client_options import (
    CONNECTION,
    CONSUMER,
    PRODUCER,
    ClientOptionError,
    mechanism,
    protocol,
    settled,
)
from ldpstream.agents.tls import tls_context

__all__ = [
    "ClientOptionError",
    "admin",
    "connection",
    "faust_settings",
    "producer",
    "reader",
    "replication_factor",
]

# A record of state stays below 1 MB; a batch of them may be larger.
_MAX_REQUEST_BYTES: Final = 4 << 20
_MAX_FETCH_BYTES: Final = 4 << 20
_SESSION_TIMEOUT_MS: Final = 10_000
_HEARTBEAT_MS: Final = 3_000


def producer(bootstrap: str, options: Mapping[str, Any]) -> AIOKafkaProducer:
    """Return a producer that is not started: acknowledged by all replicas, idempotent, lz4.

    Must be called inside a running event loop, as all functions here but `faust_settings`.

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
    chosen = {"max_partition_fetch_bytes": _MAX_FETCH_BYTES, **_chosen(options, CONSUMER)}
    return AIOKafkaConsumer(
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="none",
        fetch_max_wait_ms=wait_ms,
        isolation_level="read_committed" if committed_only else "read_uncommitted",
        **connection(bootstrap, options),
        **chosen,
    )


def admin(bootstrap: str, options: Mapping[str, Any]) -> AIOKafkaAdminClient:
    """Return an administration client that is not started.

    Raises:
        ClientOptionError: for an option that no client knows.
    """
    return AIOKafkaAdminClient(**connection(bootstrap, options))


def faust_settings(bootstrap: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a `faust.App` that connect it to the same brokers, the same way.

    Raises:
        ClientOptionError: for an option that no client knows, or that Faust cannot follow.
    """
    options = settled(options)
    session_ms = int(options.get("session_timeout_ms", _SESSION_TIMEOUT_MS))
    heartbeat_ms = int(options.get("heartbeat_interval_ms", min(_HEARTBEAT_MS, session_ms // 3)))
    settings: dict[str, Any] = {
        "broker": [f"kafka://{host.strip()}" for host in bootstrap.split(",")],
        "broker_credentials": _credentials(options),
        "broker_session_timeout": session_ms / 1000,
        "broker_heartbeat_interval": heartbeat_ms / 1000,
    }
    for option, setting, scale in (
        ("max_poll_interval_ms", "broker_max_poll_interval", 1000),
        ("rebalance_timeout_ms", "broker_rebalance_timeout", 1000),
        ("request_timeout_ms", "broker_request_timeout", 1000),
        ("max_partition_fetch_bytes", "consumer_max_fetch_size", 1),
        ("client_id", "broker_client_id", None),
    ):
        if option in options:
            value = options[option]
            settings[setting] = value if scale is None else value / scale
    return settings


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


def _credentials(options: Mapping[str, Any]) -> CredentialsT | None:
    kind, context = protocol(options), tls_context(options)
    if kind == "PLAINTEXT":
        return None
    if kind == "SSL":
        return faust.SSLCredentials(context)
    if mechanism(options) == "GSSAPI":
        return faust.GSSAPICredentials(
            kerberos_service_name=options.get("sasl_kerberos_service_name", "kafka"),
            kerberos_domain_name=options.get("sasl_kerberos_domain_name"),
            ssl_context=context,
            mechanism=mechanism(options),
        )
    return faust.SASLCredentials(
        username=options.get("sasl_plain_username"),
        password=options.get("sasl_plain_password"),
        ssl_context=context,
        mechanism=mechanism(options),
    )
