"""Who may read over HTTP: a token, and names under which a loopback address may be asked."""

import hmac
import ipaddress
import re
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from ldpstream.agents.http.parameters import AnswerError
from ldpstream.agents.http.peers import Network, is_trusted

TOKEN_LENGTH: Final = 16
"""Least length of a token: guessing one takes longer than anybody has."""

_TOKEN: Final = re.compile(r"[!-~]+")
_OWN_SITES: Final = frozenset({"same-origin", "none"})
"""`same-site` is other ports of this machine, and other people's names under one domain."""
_HOST: Final = re.compile(r"(\[[^\]]*\]|[^:\[\]]*)(:[0-9]*)?")


class TokenError(ValueError):
    """Something that cannot be a token; the text says what was expected, and never shows it."""


@dataclass(frozen=True, kw_only=True)
class Access:
    """Who may read: whoever knows the token, if there is one.

    `local` says that only this machine reaches the address. Then, without a token, names other than
    IP addresses and `localhost` are refused: a page of another site could have its own name
    resolved to this machine, and its visitor's browser would read for it.

    Raises:
        TokenError: for a token that is too short, or that a header cannot hold.
    """

    token: bytes | None = None
    local: bool = False
    trusted_proxies: tuple[Network, ...] = ()
    """They have chosen by name already, and may keep the outer one."""

    def __post_init__(self) -> None:
        if self.token is None:
            return
        if len(self.token) < TOKEN_LENGTH or not _TOKEN.fullmatch(self.token.decode("latin-1")):
            raise TokenError(f"expected at least {TOKEN_LENGTH} visible ASCII characters, no space")

    def allows(self, request: web.Request) -> bool:
        """Return whether a request shows the token, in a time that tells nothing about it."""
        if self.token is None:
            return True
        scheme, _, given = request.headers.get("Authorization", "").partition(" ")
        shown = given.strip().encode("utf-8", "surrogateescape")
        return hmac.compare_digest(shown, self.token) and scheme.lower() == "bearer"

    def check(self, request: web.Request) -> None:
        """Refuse a request under somebody else's name, for another site, or without the token.

        Raises:
            AnswerError: 421 as `check_name`, 403, or 401.
        """
        self.check_name(request)
        # A browser asks on behalf of a page of another site or origin. It would not show the answer
        # to that page, but computing it has a price. Without the header it is no browser, or an old
        # one.
        if request.headers.get("Sec-Fetch-Site", "none").lower() not in _OWN_SITES:
            raise AnswerError(
                403, "Sec-Fetch-Site: expected same-origin or none, got another site's"
            )
        if not self.allows(request):
            raise AnswerError(401, "expected the header Authorization: Bearer, and the right token")

    def check_name(self, request: web.Request) -> None:
        """Refuse a request under a name that may be somebody else's.

        Raises:
            AnswerError: 421.
        """
        if not self.local or self.token is not None:
            return
        if _is_own(request.headers.get("Host", "")) or self._is_forwarded(request):
            return
        raise AnswerError(
            421,
            "host: expected localhost or an IP address; any name will do with a token, or from "
            "one of trusted_proxies",
        )

    def _is_forwarded(self, request: web.Request) -> bool:
        return is_trusted(request.remote or "", self.trusted_proxies)


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address; of names, `localhost` alone is known."""
    bare = host.strip("[]")
    if bare == "localhost":
        return True
    try:
        return ipaddress.ip_address(bare).is_loopback
    except ValueError:
        return False


def _is_own(host: str) -> bool:
    match = _HOST.fullmatch(host)
    name = "" if match is None else match[1].strip("[]").lower()
    if name == "localhost":
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
