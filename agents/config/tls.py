"""The TLS context of all clients, from the files named in `[kafka]`."""

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ldpstream.agents.config.client_options import FILES, ClientOptionError, protocol


def tls_context(options: Mapping[str, Any]) -> ssl.SSLContext | None:
    """Return a context that verifies the broker's name and certificate; None without TLS.

    Without `ssl_cafile` the system's certificates are trusted.

    Raises:
        ClientOptionError: if a file cannot be read, or is invalid.
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
