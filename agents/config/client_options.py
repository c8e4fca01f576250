"""`[kafka]`: the brokers' addresses and the clients' options: names, values, combinations.

Reading a configuration checks the names alone; the clients check the rest (`settled`).
"""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ldpstream.agents.config.errors import ConfigError, key_path, unknown_key
from ldpstream.agents.config.secret import Secret, SecretError
from ldpstream.agents.config.serving import read_secret

FILES: Final = frozenset({"ssl_cafile", "ssl_certfile", "ssl_keyfile"})
_SECRETS: Final = frozenset({"sasl_plain_password", "sasl_plain_username", "ssl_password"})
_SASL: Final = frozenset(
    {
        "sasl_kerberos_domain_name",
        "sasl_kerberos_service_name",
        "sasl_mechanism",
        "sasl_plain_password",
        "sasl_plain_username",
    }
)
_TLS: Final = FILES | {"ssl_password"}
CONNECTION: Final = _SASL | {
    "client_id",
    "connections_max_idle_ms",
    "metadata_max_age_ms",
    "request_timeout_ms",
    "retry_backoff_ms",
    "security_protocol",
}
PRODUCER: Final = frozenset(
    {"compression_type", "enable_idempotence", "linger_ms", "max_batch_size", "max_request_size"}
)
CONSUMER: Final = frozenset({"fetch_max_bytes", "max_partition_fetch_bytes"})
GROUP: Final = frozenset(
    {"heartbeat_interval_ms", "max_poll_interval_ms", "rebalance_timeout_ms", "session_timeout_ms"}
)
_TOPIC: Final = frozenset({"replication_factor"})
OPTIONS: Final = CONNECTION | _TLS | PRODUCER | CONSUMER | GROUP | _TOPIC

_CHOICES: Final = {
    "security_protocol": ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    "sasl_mechanism": ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI"),
    "compression_type": ("none", "gzip", "snappy", "lz4", "zstd"),
}
_NUMBERS: Final = (
    (GROUP | CONSUMER | _TOPIC | PRODUCER) - {"compression_type", "enable_idempotence"}
) | {"connections_max_idle_ms", "metadata_max_age_ms", "request_timeout_ms", "retry_backoff_ms"}

_SESSION_TIMEOUT_MS: Final = 6_000
_STATIC_SESSION_TIMEOUT_MS: Final = 30_000
# Faust's default; it refuses a session longer than this.
_REQUEST_TIMEOUT_MS: Final = 90_000
# How long a client may use cached metadata. With aiokafka's default, a group that got incomplete
# metadata from a restarting broker would be idle for 5 minutes.
METADATA_MS: Final = 30_000
# The remaining members learn at their next heartbeat that one has left.
_HEARTBEAT_MS: Final = 1_000


@dataclass(frozen=True, kw_only=True)
class KafkaConfig:
    """`[kafka]`, with files relative to the configuration file, and concealed secrets."""

    bootstrap: str
    options: Mapping[str, Any]
    """Settings for the functions of `ldpstream.agents.broker.clients`."""


def read_options(
    table: Mapping[str, Any], *, base: Path, environment: Mapping[str, str]
) -> dict[str, Any]:
    """Return the clients' settings from `[kafka]`; the clients check the values."""
    for key in table:
        if key not in OPTIONS:
            names = ["bootstrap", *sorted(OPTIONS)]
            raise ConfigError(key_path(["kafka", key]), unknown_key(key, names))
    options = dict(table)
    for key, value in table.items():
        if key in _SECRETS:
            options[key] = read_secret(f"kafka.{key}", value, base=base, environment=environment)
        elif key in FILES and isinstance(value, str):
            options[key] = str(base / value)
    return options


class ClientOptionError(ValueError):
    """A key of `[kafka]` is unknown, invalid or conflicts with others; the message names it."""


def settled(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the checked options with their secrets revealed: never log or print them.

    Raises:
        ClientOptionError: for an unknown option, an invalid value, an option that needs another
            one; for a secret that cannot be read; for GSSAPI without a ticket.
    """
    _check_names(options)
    revealed = {key: _revealed(key, value) for key, value in options.items()}
    for key, value in revealed.items():
        _check_value(key, value)
    _check_together(revealed)
    if "SASL" in protocol(revealed) and mechanism(revealed) == "GSSAPI":
        _check_kerberos()
    return revealed


@dataclass(frozen=True, kw_only=True)
class GroupTimes:
    """A worker's timeouts in its consumer group, in milliseconds."""

    session_ms: int
    heartbeat_ms: int
    request_ms: int


def group_times(options: Mapping[str, Any], *, static: bool) -> GroupTimes:
    """Return a worker's timeouts in its group; `static` members have longer sessions by default.

    Raises:
        ClientOptionError: where the heartbeat interval is not below the session timeout, or the
            request timeout is.
    """
    default_ms = _STATIC_SESSION_TIMEOUT_MS if static else _SESSION_TIMEOUT_MS
    session_ms = int(options.get("session_timeout_ms", default_ms))
    heartbeat_ms = int(options.get("heartbeat_interval_ms", min(_HEARTBEAT_MS, session_ms // 3)))
    request_ms = int(options.get("request_timeout_ms", max(_REQUEST_TIMEOUT_MS, session_ms)))
    if request_ms < session_ms:
        raise ClientOptionError(
            f"kafka.request_timeout_ms: expected at least session_timeout_ms = "
            f"{session_ms}, got {request_ms}"
        )
    if heartbeat_ms >= session_ms:
        raise ClientOptionError(
            f"kafka.heartbeat_interval_ms: expected less than session_timeout_ms = "
            f"{session_ms}, got {heartbeat_ms}; a third of it or less is usual"
        )
    return GroupTimes(session_ms=session_ms, heartbeat_ms=heartbeat_ms, request_ms=request_ms)


def protocol(options: Mapping[str, Any]) -> str:
    """Return the security protocol, by default `PLAINTEXT`."""
    return str(options.get("security_protocol", "PLAINTEXT"))


def mechanism(options: Mapping[str, Any]) -> str:
    """Return the SASL mechanism, by default `PLAIN`."""
    return str(options.get("sasl_mechanism", "PLAIN"))


def _check_names(options: Mapping[str, Any]) -> None:
    unknown = sorted(options.keys() - OPTIONS)
    if unknown:
        what = unknown_key(unknown[0], sorted(OPTIONS))
        raise ClientOptionError(f"kafka.{unknown[0]}: {what}")


def _revealed(key: str, value: Any) -> Any:
    if not isinstance(value, Secret):
        return value
    try:
        return value.reveal()
    except SecretError as error:
        raise ClientOptionError(f"kafka.{key}: {error}") from error


def _check_value(key: str, value: Any) -> None:
    if key in _CHOICES:
        if value not in _CHOICES[key]:
            raise ClientOptionError(f"kafka.{key}: expected one of {', '.join(_CHOICES[key])}")
    elif key in _NUMBERS:
        if type(value) is not int or value < 0:
            raise ClientOptionError(f"kafka.{key}: expected a whole number, 0 or more")
    elif key == "enable_idempotence":
        if not isinstance(value, bool):
            raise ClientOptionError(f"kafka.{key}: expected true or false")
    elif not isinstance(value, str):
        raise ClientOptionError(f"kafka.{key}: expected a string")


def _check_together(options: Mapping[str, Any]) -> None:
    chosen = protocol(options)
    for names, word, example in (
        (_SASL, "SASL", "SASL_SSL"),
        (_TLS, "SSL", "SSL or SASL_SSL"),
    ):
        settings = sorted(names & options.keys())
        if settings and word not in chosen.split("_"):
            # Otherwise clients would connect without the security that the file asks for.
            raise ClientOptionError(
                f"kafka.security_protocol: expected {example} with kafka.{settings[0]}, got "
                + (chosen if "security_protocol" in options else f"none, which is {chosen}")
            )
    if "SASL" in chosen and mechanism(options) != "GSSAPI":
        for needed in ("sasl_plain_username", "sasl_plain_password"):
            if needed not in options:
                raise ClientOptionError(
                    f"kafka.{needed}: expected a value with security_protocol = {chosen}, got none"
                )
    if "ssl_keyfile" in options and "ssl_certfile" not in options:
        raise ClientOptionError("kafka.ssl_certfile: expected a file with ssl_keyfile, got none")


def _check_kerberos() -> None:
    """Refuse a login without the package `gssapi`, or without a currently valid ticket or key."""
    try:
        gssapi = importlib.import_module("gssapi")
    except ImportError as error:
        raise _no_login("the package gssapi (pip install gssapi), got none") from error
    try:
        # Found through KRB5CCNAME and KRB5_CLIENT_KTNAME; an expired one has a lifetime of 0.
        lifetime = gssapi.Credentials(usage="initiate").lifetime
    except gssapi.exceptions.GSSError as error:
        raise _no_login("a Kerberos ticket, got none: run kinit") from error
    if lifetime is not None and lifetime <= 0:
        raise _no_login("a Kerberos ticket, got an expired one: run kinit")


def _no_login(expected: str) -> ClientOptionError:
    return ClientOptionError(f"kafka.sasl_mechanism: expected {expected}")
