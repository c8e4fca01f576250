"""Who asks over HTTP, and who may read.

Those with the token may read; without one, on loopback, only requests under local host names. A
request comes from the peer's address, or from the client that a trusted proxy names.
"""

import hmac
import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

from aiohttp import web

from ldpstream.agents.http.parameters import AnswerError

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

_TOKEN_LENGTH: Final = 16
"""Least length of a token, so that it cannot be guessed."""

_TOKEN: Final = re.compile(r"[!-~]+")
_OWN_SITES: Final = frozenset({"same-origin", "none"})
"""`same-site` includes other ports of this machine, and other people's names in the same domain."""
_HOST: Final = re.compile(r"(\[[^\]]*\]|[^:\[\]]*)(:[0-9]*)?")
FORWARDED_FOR: Final = "X-Forwarded-For"
_IPV6_PREFIX: Final = 64
"""One subscriber usually has a whole network of this size."""


class TokenError(ValueError):
    """An invalid token; the message says what was expected, and never shows the token."""


@dataclass(frozen=True, kw_only=True)
class Access:
    """Who may read: whoever knows the token, if one is set.

    `local` says that only this machine reaches the address. Then, without a token, host names other
    than IP addresses and `localhost` are refused (DNS rebinding): another site could make its own
    name resolve to this machine, and read through its visitor's browser.

    Raises:
        TokenError: for a token that is too short, or cannot be sent in a header.
    """

    token: bytes | None = None
    local: bool = False
    trusted_proxies: tuple[Network, ...] = ()
    """Proxies route by host name themselves, and may pass on the client's `Host`."""

    def __post_init__(self) -> None:
        if self.token is None:
            return
        if len(self.token) < _TOKEN_LENGTH or not _TOKEN.fullmatch(self.token.decode("latin-1")):
            raise TokenError(
                f"expected at least {_TOKEN_LENGTH} visible ASCII characters, no space"
            )

    def allows(self, request: web.Request) -> bool:
        """Return whether a request has the token, in constant time."""
        if self.token is None:
            return True
        scheme, _, given = request.headers.get("Authorization", "").partition(" ")
        shown = given.strip().encode("utf-8", "surrogateescape")
        return hmac.compare_digest(shown, self.token) and scheme.lower() == "bearer"

    def check(self, request: web.Request) -> None:
        """Refuse a request under a foreign host name, from another site, or without the token.

        Raises:
            AnswerError: 421 as `check_name`, 403, or 401.
        """
        self.check_name(request)
        # A browser that asks for a page of another site would not show it the answer, but computing
        # one has a price. Without this header it is an old browser, or something else.
        if request.headers.get("Sec-Fetch-Site", "none").lower() not in _OWN_SITES:
            raise AnswerError(
                403, "Sec-Fetch-Site: expected same-origin or none, got another site's"
            )
        if not self.allows(request):
            raise AnswerError(401, "expected the header Authorization: Bearer, and the right token")

    def check_name(self, request: web.Request) -> None:
        """Refuse a request under a host name that may be somebody else's.

        Raises:
            AnswerError: 421.
        """
        if not self.local or self.token is not None:
            return
        own = _is_own(request.headers.get("Host", ""))
        if own or is_trusted(request.remote or "", self.trusted_proxies):
            return
        raise AnswerError(
            421,
            "host: expected localhost or an IP address; other names need a token, or one of "
            "trusted_proxies",
        )


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address; the only name known is `localhost`."""
    bare = host.strip("[]")
    if bare == "localhost":
        return True
    address = _parse(bare)
    return address is not None and address.is_loopback


def _is_own(host: str) -> bool:
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


def forwarded_for(request: web.Request, proxies: Sequence[Network]) -> str | None:
    """Return the client that a trusted proxy names in `X-Forwarded-For`; None if it names none.

    Each proxy appends the address that it was asked by, and a client may write anything before
    that. So the client is the last address that is not a trusted proxy.
    """
    named = ",".join(request.headers.getall(FORWARDED_FOR, [])).split(",")
    for one in reversed(named):
        address = _parse(_without_port(one.strip()))
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
