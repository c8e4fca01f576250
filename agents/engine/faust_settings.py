"""Settings of a Faust app from the `[kafka]` table, like `ldpstream.agents.broker.clients`."""

from collections.abc import Mapping
from typing import Any, Final

import faust
from faust.types.auth import CredentialsT

from ldpstream.agents.broker.clients import tls_context
from ldpstream.agents.config import client_options

_FAUST_PORT: Final = 6065


def faust_settings(
    bootstrap: str, options: Mapping[str, Any], *, instance: str | None = None
) -> dict[str, Any]:
    """Return settings with which a `faust.App` connects to the same brokers in the same way.

    Faust's own page is served only on this machine, at port 6065, because 6066 is ldpstream's;
    Faust's options `--web-bind` and `--web-port` change that.

    `instance` is the app's name in its group, the same after a restart. With one, the session is
    longer, and its partitions wait for it.

    Raises:
        ClientOptionError: for an unknown option, or timeouts that contradict each other.
    """
    options = client_options.settled(options)
    times = client_options.group_times(options, static=instance is not None)
    settings: dict[str, Any] = {
        # Faust's own web server has no access rules, and listens on all addresses by default.
        "web_bind": "127.0.0.1",
        "web_port": _FAUST_PORT,
        "broker": [f"kafka://{host.strip()}" for host in bootstrap.split(",")],
        "broker_credentials": _credentials(options),
        "broker_session_timeout": times.session_ms / 1000,
        "broker_heartbeat_interval": times.heartbeat_ms / 1000,
        "broker_request_timeout": times.request_ms / 1000,
        "consumer_metadata_max_age_ms": client_options.METADATA_MS,
    }
    if instance is not None:
        settings["consumer_group_instance_id"] = instance
    for option, setting, scale in (
        ("max_poll_interval_ms", "broker_max_poll_interval", 1000),
        ("rebalance_timeout_ms", "broker_rebalance_timeout", 1000),
        ("max_partition_fetch_bytes", "consumer_max_fetch_size", 1),
        ("metadata_max_age_ms", "consumer_metadata_max_age_ms", 1),
        ("client_id", "broker_client_id", None),
    ):
        if option in options:
            value = options[option]
            settings[setting] = value if scale is None else value / scale
    return settings


def _credentials(options: Mapping[str, Any]) -> CredentialsT | None:
    kind, context = client_options.protocol(options), tls_context(options)
    if kind == "PLAINTEXT":
        return None
    if kind == "SSL":
        return faust.SSLCredentials(context)
    if client_options.mechanism(options) == "GSSAPI":
        return faust.GSSAPICredentials(
            kerberos_service_name=options.get("sasl_kerberos_service_name", "kafka"),
            kerberos_domain_name=options.get("sasl_kerberos_domain_name"),
            ssl_context=context,
            mechanism=client_options.mechanism(options),
        )
    return faust.SASLCredentials(
        username=options.get("sasl_plain_username"),
        password=options.get("sasl_plain_password"),
        ssl_context=context,
        mechanism=client_options.mechanism(options),
    )
