"""Hosts, ports and URLs, checked before anything looks them up.

Python's own look-up raises a `UnicodeError` for names that no resolver would be asked about.
"""

import ipaddress
import re
from typing import Final
from urllib.parse import urlsplit

_PORT: Final = re.compile(r"[0-9]{1,5}")
_NOT_IN_NAMES: Final = re.compile(r"[\s/\\@?#\[\]%:]")
BROKERS_EXPECTED: Final = (
    'host:port, several with commas, such as "127.0.0.1:9092", with 1 to 63 characters between the '
    "dots of a name"
)


def is_port(text: str) -> bool:
    """Return whether a text is a port number."""
    return _PORT.fullmatch(text) is not None and int(text) < 65_536


def is_host(text: str) -> bool:
    """Return whether a text is an IP address, maybe in brackets, or may be the name of a host.

    >>> is_host("[::1]"), is_host("kafka.svc."), is_host(".kafka.svc"), is_host("a" * 64)
    (True, True, False, False)
    """
    address = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    try:
        ipaddress.ip_address(address)
    except ValueError:
        pass
    else:
        return True
    try:
        # As the look-up encodes it.
        text.encode("idna")
    except UnicodeError:
        return False
    return text != "" and _NOT_IN_NAMES.search(text) is None


def are_brokers(text: str) -> bool:
    """Return whether a text is a list of `host` or `host:port` with commas."""
    for broker in text.split(","):
        name = broker.strip()
        host, colon, port = name.rpartition(":")
        if not (is_host(host) and is_port(port) if colon else is_host(name)):
            return False
    return True


def is_url(text: str) -> bool:
    """Return whether a text is a URL of HTTP whose host and port are possible.

    >>> is_url("https://worker:6066/"), is_url("http://.../"), is_url("worker:6066")
    (True, False, False)
    """
    try:
        address = urlsplit(text)
        # Reading the port checks it.
        host, _ = address.hostname, address.port
    except ValueError:
        return False
    return address.scheme in {"http", "https"} and host is not None and is_host(host)
