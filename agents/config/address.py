"""Check addresses to listen on and addresses of others."""

import ipaddress
from typing import TypeAlias

from ldpstream.agents.config.errors import refused

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


def is_port(text: str) -> bool:
    """Return whether a text is a port number."""
    return text.isascii() and text.isdigit() and int(text) < 65_536


def http_address(value: str) -> str:
    """Return a valid `host:port`; anything else raises what pydantic reports as a refusal."""
    host, colon, port = value.rpartition(":")
    if not (host and colon and is_port(port)):
        raise refused('an address such as "127.0.0.1:6066"', value)
    return value


def network(value: str) -> str:
    """Return a valid IP address or network; anything else is refused."""
    try:
        ipaddress.ip_network(value)
    except ValueError:
        raise refused('an IP address or a network such as "10.0.0.0/8"', value) from None
    return value
