"""Addresses to listen on, and of others."""

import ipaddress
from typing import TypeAlias

from ldpstream.agents.config.errors import refused

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


def is_port(text: str) -> bool:
    """Return whether a text is the number of a port."""
    return text.isascii() and text.isdigit() and int(text) < 65_536


def http_address(value: str) -> str:
    """Refuse what is no `host:port`; pydantic turns what is raised into a refusal."""
    host, colon, port = value.rpartition(":")
    if not (host and colon and is_port(port)):
        raise refused('an address such as "127.0.0.1:6066"', value)
    return value


def network(value: str) -> str:
    """Refuse what is no IP address and no network of them."""
    try:
        ipaddress.ip_network(value)
    except ValueError:
        raise refused('an IP address or a network such as "10.0.0.0/8"', value) from None
    return value
