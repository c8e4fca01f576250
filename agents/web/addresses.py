"""Addresses: which reach only this machine, and from which a request comes.

A request comes from its peer's address, or from the client that a trusted proxy names.
"""

import ipaddress
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, TypeAlias

from aiohttp import web

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

FORWARDED_FOR: Final = "X-Forwarded-For"
_HOST: Final = re.compile(r"(\[[^\]]*\]|[^:\[\]]*)(:[0-9]*)?")
_IPV6_PREFIX: Final = 64
"""One subscriber usually has a whole network of this size."""


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address; the only name known is `localhost`."""
    bare = host.strip("[]")
    if bare == "localhost":
        return True
    address = _parse(bare)
    return address is not None and address.is_loopback


@lru_cache(maxsize=256)
def is_own_name(host: str) -> bool:
    """Return whether a `Host` header has a name that nobody else can own, with any port.

    These are `localhost` and IP addresses.
    """
    match = _HOST.fullmatch(host)
    name = "" if match is None else match[1].strip("[]").lower()
    return name == "localhost" or _parse(name) is not None


@lru_cache(maxsize=4096)
def is_trusted(host: str, proxies: tuple[Network, ...]) -> bool:
    """Return whether an address is among those of trusted proxies."""
    address = _parse(host) if proxies else None
    return address is not None and any(address in network for network in proxies)


@lru_cache(maxsize=4096)
def peer_name(host: str) -> str:
    """Return the name under which an address is counted; an IPv6 network counts as one peer."""
    address = _parse(host)
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((address, _IPV6_PREFIX), strict=False))
    return host if address is None else str(address)


def forwarded_for(request: web.BaseRequest, proxies: Sequence[Network]) -> str | None:
    """Return the client that a trusted proxy names in `X-Forwarded-For`; None if it names none.

    Each proxy appends the address that it was asked by, and a client may write anything before
    that. So the client is the last address that is not a trusted proxy.
    """
    named = ",".join(request.headers.getall(FORWARDED_FOR, [])).split(",")
    for entry in reversed(named):
        address = _parse(_without_port(entry.strip()))
        if address is None:
            return None
        if not any(address in network for network in proxies):
            return str(address)
    return None


def _without_port(text: str) -> str:
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0] if text.count(":") == 1 else text


def _parse(host: str) -> Address | None:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    # A dual-stack socket shows an IPv4 address as IPv6.
    mapped = getattr(address, "ipv4_mapped", None)
    return address if mapped is None else mapped
