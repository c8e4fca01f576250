"""Find out why brokers refuse a connection, by making one more.

The clients only report that they could not bootstrap. This module makes the same connection again
and, if it breaks, tries the other kind (TLS or plain), without sending credentials.
"""

import asyncio
import ssl
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

from aiokafka.conn import AIOKafkaConnection, collect_hosts
from aiokafka.errors import (
    AuthenticationFailedError,
    IllegalSaslStateError,
    KafkaError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)
from aiokafka.protocol.metadata import MetadataRequest

from ldpstream.agents.broker import clients
from ldpstream.agents.config.client_options import mechanism, protocol

_PATIENCE_MS: Final = 5_000
_CLOSE_SECONDS: Final = 1.0
_NOT_OF_CONNECTIONS: Final = frozenset(
    {"bootstrap_servers", "connections_max_idle_ms", "metadata_max_age_ms", "retry_backoff_ms"}
)
_LOGIN: Final = (AuthenticationFailedError, SaslAuthenticationFailed)
_BROKEN: Final = (OSError, EOFError, TimeoutError, KafkaError)
_OWN_CERTIFICATE: Final = (
    "it wants a certificate of ours: set kafka.ssl_certfile and kafka.ssl_keyfile to one that it "
    "trusts"
)
# OpenSSL's X509_V_ERR_...
_EXPIRED: Final = frozenset({9, 10})
_OTHER_NAME: Final = frozenset({62, 64})


async def why_not(bootstrap: str, options: Mapping[str, Any]) -> str | None:
    """Return the cause and the setting that fixes it; None if nobody answers, or all is well."""
    settings = clients.connection(bootstrap, options)
    hosts = settings["bootstrap_servers"]
    for name in _NOT_OF_CONNECTIONS & settings.keys():
        del settings[name]
    settings["request_timeout_ms"] = _PATIENCE_MS
    for host, port, _ in collect_hosts(hosts):
        answer = await _connect(host, port, settings)
        if isinstance(answer, str):
            return f"the broker at {host}:{port} does not let us in: {answer}"
        if answer and (unreachable := await _unreachable(answer - {(host, port)}, settings)):
            return (
                f"the broker at {host}:{port} answers, but sends clients on to {unreachable}, "
                "which cannot be reached from here: set advertised.listeners of the broker to an "
                "address that clients reach, or kafka.bootstrap to a listener that advertises one"
            )
    return None


_Address = tuple[str, int]


async def _unreachable(addresses: Iterable[_Address], settings: Mapping[str, Any]) -> str:
    """Return those of the addresses that brokers advertise to which no connection can be made."""
    unreachable = []
    for host, port in sorted(addresses):
        connection = AIOKafkaConnection(host, port, **settings)
        try:
            await connection.connect()
        except (OSError, TimeoutError):
            unreachable.append(f"{host}:{port}")
        except (EOFError, KafkaError):
            pass  # Something answers there.
        finally:
            await _close(connection)
    return " and ".join(unreachable)


async def _connect(
    host: str, port: int, settings: Mapping[str, Any]
) -> str | frozenset[_Address] | None:
    """Return why a broker refuses us, or the addresses that it sends clients on to."""
    connection = AIOKafkaConnection(host, port, **settings)
    try:
        await connection.connect()
        return await _advertised_addresses(connection, protocol(settings))
    except ssl.SSLCertVerificationError as error:
        return _explain_certificate(error, host)
    except _LOGIN:
        return (
            "it does not know this user with this password: look at kafka.sasl_plain_username "
            "and kafka.sasl_plain_password"
        )
    except UnsupportedSaslMechanismError:
        return f"it offers no {mechanism(settings)} here: set kafka.sasl_mechanism to what it does"
    except IllegalSaslStateError:
        plain = "SSL" if "SSL" in protocol(settings) else "PLAINTEXT"
        return f'it asks for no login here: set kafka.security_protocol = "{plain}", without sasl_'
    except _BROKEN as error:
        return await _explain_break(host, port, protocol(settings), error)
    finally:
        await _close(connection)


async def _advertised_addresses(
    connection: AIOKafkaConnection, kind: str
) -> str | frozenset[_Address] | None:
    try:
        answer = await connection.send(MetadataRequest([]))
    except _BROKEN as error:
        return _explain_refusal(kind, error)
    brokers = answer.to_object()["brokers"]
    return frozenset((str(broker["host"]), int(broker["port"])) for broker in brokers)


def _explain_certificate(error: ssl.SSLCertVerificationError, host: str) -> str:
    if error.verify_code in _OTHER_NAME:
        return (
            f"its certificate is not for the name {host}: set kafka.bootstrap to a name that the "
            "certificate holds"
        )
    if error.verify_code in _EXPIRED:
        return f"its certificate is not valid now ({error.verify_message}): have it renewed"
    return (
        f"its certificate is not trusted ({error.verify_message}): set kafka.ssl_cafile to the "
        "certificate of the authority that signed it"
    )


async def _explain_break(host: str, port: int, kind: str, error: BaseException) -> str | None:
    """After a broken connection, check whether the listener is of the other kind."""
    if isinstance(error, ConnectionRefusedError):
        return None
    if kind.endswith("SSL"):
        if _wants_certificate(error):
            return _OWN_CERTIFICATE
        if await _speaks_plainly(host, port):
            plain = "SASL_PLAINTEXT" if kind == "SASL_SSL" else "PLAINTEXT"
            return (
                "it speaks no TLS here: set kafka.bootstrap to its TLS listener, or "
                f'kafka.security_protocol = "{plain}"'
            )
        if isinstance(error, ssl.SSLError):
            return f"TLS fails with {error.reason}: look at kafka.ssl_cafile and its listener"
    elif await _speaks_tls(host, port):
        encrypted = "SASL_SSL" if "SASL" in kind else "SSL"
        return f'it speaks TLS here: set kafka.security_protocol = "{encrypted}"'
    return None


def _explain_refusal(kind: str, error: BaseException) -> str | None:
    """Explain why an established connection was closed at the first request."""
    if _wants_certificate(error):
        return _OWN_CERTIFICATE
    if "SASL" not in kind:
        secured = "SASL_SSL" if kind == "SSL" else "SASL_PLAINTEXT"
        return (
            "it closed the connection, as one does that wants a login: set "
            f'kafka.security_protocol = "{secured}", and sasl_mechanism'
        )
    return None


def _wants_certificate(error: BaseException | None) -> bool:
    while error is not None:
        reason = getattr(error, "reason", None)
        if isinstance(error, ssl.SSLError) and reason and "ALERT" in reason:
            return "CERTIFICATE" in reason or "UNKNOWN_CA" in reason
        error = error.__cause__
    return False


async def _speaks_plainly(host: str, port: int) -> bool:
    connection = AIOKafkaConnection(host, port, request_timeout_ms=_PATIENCE_MS)
    try:
        await connection.connect()
    except _BROKEN:
        return False
    finally:
        await _close(connection)
    return True


async def _speaks_tls(host: str, port: int) -> bool:
    context = ssl.create_default_context()
    # Nothing is sent over it; it only shows what the listener speaks.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        async with asyncio.timeout(_PATIENCE_MS / 1000):
            _, writer = await asyncio.open_connection(host, port, ssl=context)
    except (OSError, TimeoutError):
        return False
    writer.close()
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(_CLOSE_SECONDS):
            await writer.wait_closed()
    return True


async def _close(connection: AIOKafkaConnection) -> None:
    closed = connection.close()
    if closed is not None:
        await asyncio.wait([closed], timeout=_CLOSE_SECONDS)
