"""What `[worker]` and `[gateway]` share: an address, and who may use it.

Paths become relative to the configuration, networks and secrets become objects. The context of a
validation holds `base` and `environment`.
"""

import ipaddress
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetPydanticSchema,
    PlainValidator,
    Strict,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError, core_schema

from ldpstream.agents.config.errors import REFUSED, ConfigError, refused
from ldpstream.agents.config.hosts import is_host, is_port
from ldpstream.agents.config.secret import EnvironmentSecret, FileSecret, GivenSecret, Secret

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

_SOURCES: Final = '{ env = "NAME" } or { file = "PATH" }'


def _address(value: str) -> str:
    host, colon, port = value.rpartition(":")
    if not (colon and is_host(host) and is_port(port)):
        raise refused('an address such as "127.0.0.1:6066"', value)
    return value


def _network(value: str) -> Network:
    try:
        return ipaddress.ip_network(value)
    except ValueError:
        raise refused('an IP address or a network such as "10.0.0.0/8"', value) from None


def _place(value: str, info: ValidationInfo) -> Path:
    return Path((info.context or {}).get("base", "")) / value


def read_secret(path: str, value: object, *, base: Path, environment: Mapping[str, str]) -> Secret:
    """Return the secret that a key's value refers to; paths are relative to `base`."""
    match value:
        case str():
            return GivenSecret(value)
        case {"env": str(name), **others} if name and not others:
            return EnvironmentSecret(name, environment)
        case {"file": str(file), **others} if file and not others:
            return FileSecret(base / file)
        case _:
            # The value may be the secret itself, so it is not shown.
            raise ConfigError(path, f"expected a string, {_SOURCES}")


def _secret(value: object, info: ValidationInfo) -> Secret:
    context = {"base": Path(), "environment": os.environ, **(info.context or {})}
    try:
        return read_secret("", value, **context)
    except ConfigError as error:
        raise PydanticCustomError(REFUSED, "{problem}", {"problem": error.problem}) from None


_TEXT: Final = core_schema.str_schema(strict=True)
_FILE: Final = core_schema.str_schema(strict=True, min_length=1)
_SECRET: Final = {
    "title": "secret",
    "anyOf": [
        {"type": "string"},
        {
            "type": "object",
            "additionalProperties": False,
            "properties": {"env": {"type": "string"}, "file": {"type": "string"}},
        },
    ],
}
PlacedFile = Annotated[
    Path,
    GetPydanticSchema(
        lambda *_: core_schema.with_info_after_validator_function(_place, _FILE),
    ),
]
"""A file or folder, relative to the configuration's folder."""
Networks = Annotated[
    tuple[
        Annotated[
            Network,
            GetPydanticSchema(
                lambda *_: core_schema.no_info_after_validator_function(_network, _TEXT),
            ),
        ],
        ...,
    ],
    Strict(strict=False),
]
Address = Annotated[str, AfterValidator(_address)]
SecretKey = Annotated[Secret | None, PlainValidator(_secret), WithJsonSchema(_SECRET)]


_ORIGIN: Final = re.compile(r"https?://[a-z0-9.-]+(:[0-9]{1,5})?|https?://\[[0-9a-f:]+\](:[0-9]+)?")


def check_origin(value: str, *, alternative: str = "") -> str:
    """Return an origin as browsers send it.

    Raises:
        PydanticCustomError: for anything else; `alternative` follows what was expected.
    """
    if not _ORIGIN.fullmatch(value):
        what = f'an origin as browsers send it, such as "https://survey.example"{alternative}'
        raise refused(what, value)
    return value


class Table(BaseModel):
    """A TOML table: unknown keys and values of the wrong type are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ServingTable(Table):
    """A table of a process that serves HTTP."""

    http: Address = Field(
        default="127.0.0.1:6066",
        description="Address of page, API and metrics; port 0 takes any free one",
    )
    token: SecretKey = Field(
        default=None,
        description=(
            "The bearer token of readers; required unless `http` is a loopback address or "
            "`open_to_everybody` is set"
        ),
        examples=[{"env": "LDPSTREAM_READ_TOKEN"}],
    )
    certificate: PlacedFile | None = Field(
        default=None,
        description="For HTTPS: PEM file of the certificate chain; needs `key`",
        examples=["chain.pem"],
    )
    key: PlacedFile | None = Field(
        default=None,
        description="PEM file of the certificate's unencrypted key",
        examples=["key.pem"],
    )
    trusted_proxies: Networks = Field(
        default=(),
        description="Networks whose `X-Forwarded-For` is believed, and whose `Host` is not checked",
        examples=[["10.0.0.0/8"]],
    )

    def check_together(self, path: str) -> None:
        """Refuse a certificate without its key, or a key without its certificate."""
        if (self.certificate is None) != (self.key is None):
            missing = "key" if self.key is None else "certificate"
            raise ConfigError(f"{path}.{missing}", "expected certificate and key, or neither")
