"""Check what Kerberos logins need: the package and a ticket."""

import importlib


class KerberosError(ValueError):
    """A Kerberos login is impossible; the text says what is missing."""


def check_kerberos() -> None:
    """Refuse a login without the package `gssapi`, or without a currently valid ticket or key.

    Raises:
        KerberosError: saying which is missing.
    """
    try:
        gssapi = importlib.import_module("gssapi")
    except ImportError as error:
        raise KerberosError("expected the package gssapi (pip install gssapi), got none") from error
    try:
        # From where KRB5CCNAME and KRB5_CLIENT_KTNAME say; the lifetime is 0 once it has expired.
        lifetime = gssapi.Credentials(usage="initiate").lifetime
    except gssapi.exceptions.GSSError as error:
        raise KerberosError("expected a Kerberos ticket, got none: run kinit") from error
    if lifetime is not None and lifetime <= 0:
        raise KerberosError("expected a Kerberos ticket, got an expired one: run kinit")
