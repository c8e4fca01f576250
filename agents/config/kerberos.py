"""Kerberos logins: the package and the ticket that they need."""

import importlib


class KerberosError(ValueError):
    """There can be no Kerberos login; the text says what is missing."""


def check_kerberos() -> None:
    """Refuse a login without the package `gssapi`, or without a ticket or key that is valid now.

    Raises:
        KerberosError: saying which.
    """
    try:
        gssapi = importlib.import_module("gssapi")
    except ImportError as error:
        raise KerberosError("expected the package gssapi (pip install gssapi), got none") from error
    try:
        # Looked for where KRB5CCNAME and KRB5_CLIENT_KTNAME say; 0 once it has run out.
        lifetime = gssapi.Credentials(usage="initiate").lifetime
    except gssapi.exceptions.GSSError as error:
        raise KerberosError("expected a Kerberos ticket, got none: run kinit") from error
    if lifetime is not None and lifetime <= 0:
        raise KerberosError("expected a Kerberos ticket, got one that has run out: run kinit")
