"""Addresses to listen on."""

from ldpstream.agents.config.errors import refused


def is_port(text: str) -> bool:
    """Return whether a text is the number of a port."""
    return text.isascii() and text.isdigit() and int(text) < 65_536


def http_address(value: str) -> str:
    """Refuse what is no `host:port`; pydantic turns what is raised into a refusal."""
    host, colon, port = value.rpartition(":")
    if not (host and colon and is_port(port)):
        raise refused('an address such as "127.0.0.1:6066"', value)
    return value
