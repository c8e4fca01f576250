"""Who may read over HTTP: a token, and names under which a loopback address may be asked."""

import hmac
import ipaddress
import re
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from ldpstream.agents.http.parameters import AnswerError

TOKEN_LENGTH: Final = 16
"""Least length of a token: guessing one takes longer than anybody has."""

_TOKEN: Final = re.compile(r"[!-~]+")
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
        """Refuse a request without the token.

        Raises:
            AnswerError: 401.
        """
        if not self.allows(request):
            raise AnswerError(401, "expected the header Authorization: Bearer, and the right token")

    def check_name(self, request: web.Request) -> None:
        """Refuse a request under a name that may be somebody else's.

        Raises:
            AnswerError: 421.
        """
        if self.local and self.token is None and not _is_own(request.headers.get("Host", "")):
            raise AnswerError(
                421,
                "host: expected localhost or an IP address; any name will do with a token",
            )


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
