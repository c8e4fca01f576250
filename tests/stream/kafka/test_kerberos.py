"""A Kerberos login that cannot succeed is refused in one line, before anything connects."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from ldpstream.agents.config.client_options import ClientOptionError, settled

OPTIONS = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "GSSAPI"}


class GSSError(Exception):
    """Stands for the package's own error."""


def package(lifetime: int | None, *, fails: bool = False) -> Any:
    """Return a stand-in for the package, with a ticket of this lifetime in seconds."""

    def credentials(*, usage: str) -> Any:
        assert usage == "initiate"
        if fails:
            raise GSSError
        return SimpleNamespace(lifetime=lifetime)

    return SimpleNamespace(Credentials=credentials, exceptions=SimpleNamespace(GSSError=GSSError))


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        (None, "expected the package gssapi (pip install gssapi), got none"),
        (package(None, fails=True), "expected a Kerberos ticket, got none: run kinit"),
        (package(0), "expected a Kerberos ticket, got an expired one: run kinit"),
    ],
)
def test_a_missing_package_or_ticket_is_named(
    monkeypatch: pytest.MonkeyPatch, module: Any, expected: str
) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", module)
    with pytest.raises(ClientOptionError) as refused:
        settled(OPTIONS)
    assert str(refused.value) == f"kafka.sasl_mechanism: {expected}"


@pytest.mark.parametrize("lifetime", [3600, None])
def test_a_ticket_is_enough(monkeypatch: pytest.MonkeyPatch, lifetime: int | None) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", package(lifetime))
    assert settled(OPTIONS) == OPTIONS


def test_other_logins_need_no_ticket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    plain = {"security_protocol": "SASL_PLAINTEXT", "sasl_plain_username": "a"}
    plain["sasl_plain_password"] = "b"
    assert settled(plain) == plain
