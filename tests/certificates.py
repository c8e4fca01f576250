"""A throwaway certificate authority and certificates that it signed, for TLS tests."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests import missing

KEY_PASSWORD = "pass-of-the-key"


@dataclass(frozen=True)
class Certificates:
    """Files in PEM format."""

    authority: Path
    broker: Path
    """Key and certificate for 127.0.0.1, in one file."""
    client: Path
    """A certificate for CN=worker."""
    client_key: Path
    """The client's private key, encrypted with KEY_PASSWORD."""
    stranger: Path
    """An authority that has signed none of these."""


def skip_without_openssl() -> None:
    """Skip the calling test where openssl is missing, or fail it where openssl is required."""
    missing.skip_without("openssl")


def make_certificates(folder: Path) -> Certificates:
    """Make all files in a folder, valid for a day."""
    authority = _authority(folder, "authority")
    stranger = _authority(folder, "stranger")
    broker = _signed(folder, "broker", authority, "subjectAltName=IP:127.0.0.1")
    client = _signed(folder, "worker", authority, "extendedKeyUsage=clientAuth")
    both = folder / "broker-both.pem"
    both.write_text(broker.with_suffix(".key").read_text() + broker.read_text())
    encrypted = folder / "worker-encrypted.key"
    _openssl(
        *("pkcs8", "-topk8", "-in", client.with_suffix(".key"), "-out", encrypted),
        *("-passout", f"pass:{KEY_PASSWORD}"),
    )
    return Certificates(authority, both, client, encrypted, stranger)


def _authority(folder: Path, name: str) -> Path:
    file = folder / f"{name}.pem"
    _openssl(
        *("req", "-x509", "-newkey", "rsa:2048", "-noenc", "-days", "1", "-subj", f"/CN={name}"),
        *("-addext", "keyUsage=critical,keyCertSign"),  # Python 3.13 takes none without.
        *("-keyout", file.with_suffix(".key"), "-out", file),
    )
    return file


def _signed(folder: Path, name: str, authority: Path, extension: str) -> Path:
    file = folder / f"{name}.pem"
    _openssl(
        *("req", "-x509", "-newkey", "rsa:2048", "-noenc", "-days", "1", "-subj", f"/CN={name}"),
        *("-CA", authority, "-CAkey", authority.with_suffix(".key"), "-addext", extension),
        *("-addext", "basicConstraints=critical,CA:FALSE"),
        *("-keyout", file.with_suffix(".key"), "-out", file),
    )
    return file


def _openssl(*arguments: str | Path) -> None:
    done = subprocess.run(
        ["openssl", *map(str, arguments)], capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    if done.returncode:
        raise RuntimeError(f"openssl {arguments[0]}: {done.stderr[-2000:]}")
