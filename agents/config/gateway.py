"""`[gateway]`: where devices that cannot speak Kafka upload their reports."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from ldpstream.agents.config.address import Network, http_address, network
from ldpstream.agents.config.durations import DAY_MS, SECOND_MS, Duration, PositiveDuration
from ldpstream.agents.config.errors import ConfigError, refused
from ldpstream.agents.config.secret import Secret
from ldpstream.agents.config.secrets import SecretTable, read_secret
from ldpstream.mechanisms.base.times import format_duration

UPLOAD_BYTES_LIMIT: Final = 500_000
"""An upload must fit into one frame, and a frame into a Kafka message of the default size."""
ANY_ORIGIN: Final = "*"

_ORIGIN: Final = re.compile(r"https?://[a-z0-9.-]+(:[0-9]{1,5})?|https?://\[[0-9a-f:]+\](:[0-9]+)?")
_LONGEST_LINGER_MS: Final = 60_000


def _origin(value: str) -> str:
    if value != ANY_ORIGIN and not _ORIGIN.fullmatch(value):
        raise refused(
            'an origin as browsers send it, such as "https://survey.example", or "*"', value
        )
    return value


def _linger(value: int) -> int:
    if value > _LONGEST_LINGER_MS:
        raise refused("at most 1m", format_duration(value))
    return value


class GatewayTable(BaseModel):
    """`[gateway]`: durations in milliseconds."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    http: Annotated[str, AfterValidator(http_address)] = Field(
        default="127.0.0.1:8080", description="Address of uploads; port 0: any free"
    )
    origins: list[Annotated[str, AfterValidator(_origin)]] = Field(
        default=[], description='Origins of pages that may upload; "*" is any'
    )
    token: SecretTable = Field(
        default=None, description="What uploads must show; none if devices hold no secret"
    )
    certificate: str | None = Field(
        default=None, min_length=1, description="For HTTPS: the chain's PEM file, with `key`"
    )
    key: str | None = Field(
        default=None, min_length=1, description="The certificate's unencrypted key, a PEM file"
    )
    upload_bytes: int = Field(
        default=256 << 10, ge=1_000, le=UPLOAD_BYTES_LIMIT, description="The largest body"
    )
    queue: int = Field(
        default=10_000, ge=1, le=1_000_000, description="Most uploads that wait for the broker"
    )
    queue_bytes: int = Field(
        default=64 << 20, ge=UPLOAD_BYTES_LIMIT, le=1 << 36, description="Sum of their bodies"
    )
    connections: int = Field(
        default=2_000, ge=1, le=100_000, description="Most connections that are open at once"
    )
    connections_per_peer: int = Field(
        default=500,
        ge=1,
        le=100_000,
        description="The same of one address; behind trusted proxies, requests of one client",
    )
    trusted_proxies: list[Annotated[str, AfterValidator(network)]] = Field(
        default=[],
        description="Networks whose `X-Forwarded-For` is believed, and whose `Host` is not checked",
    )
    linger: Annotated[Duration, AfterValidator(_linger)] = Field(
        default=50, description="How long an upload waits for others to share its frame"
    )
    shuffle: int = Field(
        default=0,
        ge=0,
        le=100_000,
        description="Reports go to the topic in batches of so many at least, sorted, at one time, "
        "one an upload; 0: as they come",
    )
    patience: PositiveDuration = Field(
        default=10 * SECOND_MS, description="How long one request waits for the broker"
    )
    remember: PositiveDuration = Field(
        default=7 * DAY_MS, description="How long the key of an acknowledged upload is kept"
    )
    remembered: int = Field(
        default=1_000_000, ge=1, le=1_000_000_000, description="Most keys that are kept"
    )


@dataclass(frozen=True, kw_only=True)
class GatewayConfig:
    """`[gateway]`."""

    http: str
    """`host:port`; port 0 is any free port."""
    origins: tuple[str, ...]
    """Origins of pages that may upload; `*` is any."""
    token: Secret | None
    """The token required of uploads; None if devices hold no secret."""
    certificate: Path | None
    """For HTTPS, a chain in PEM format, with `key`."""
    key: Path | None
    upload_bytes: int
    """The largest body."""
    queue: int
    """The most uploads waiting for the broker."""
    queue_bytes: int
    """The sum of their bodies."""
    connections: int
    """The most open connections."""
    connections_per_peer: int
    """The most from one address; behind trusted proxies, concurrent requests of one client."""
    trusted_proxies: tuple[Network, ...]
    """Those whose `X-Forwarded-For` is believed, and whose `Host` is not checked."""
    linger_ms: int
    """How long an upload waits for others to share its frame."""
    shuffle: int
    """Reports of a batch at least; 0 or 1: no batches."""
    patience_ms: int
    """How long one request waits for the broker."""
    remember_ms: int
    """How long the key of an acknowledged upload is kept, counted in whole minutes."""
    remembered: int
    """The most keys that are kept."""


def read_gateway(
    table: GatewayTable, *, base: Path, environment: Mapping[str, str]
) -> GatewayConfig:
    """Return the table's settings; files are relative to `base`.

    Raises:
        ConfigError: naming the key and what was expected.
    """
    if (table.certificate is None) != (table.key is None):
        missing = "key" if table.key is None else "certificate"
        raise ConfigError(f"gateway.{missing}", "expected certificate and key, or neither")
    if 2 * table.shuffle > table.queue:
        raise ConfigError(
            "gateway.queue",
            f"expected at least twice shuffle ({table.shuffle:,}), whose batches wait in it, "
            f"got {table.queue:,}",
        )
    token = table.token
    if token is not None:
        token = read_secret("gateway.token", token, base=base, environment=environment)
    return GatewayConfig(
        http=table.http,
        origins=tuple(table.origins),
        token=token,
        certificate=None if table.certificate is None else base / table.certificate,
        key=None if table.key is None else base / table.key,
        upload_bytes=table.upload_bytes,
        queue=table.queue,
        queue_bytes=table.queue_bytes,
        connections=table.connections,
        connections_per_peer=table.connections_per_peer,
        trusted_proxies=tuple(ip_network(one) for one in table.trusted_proxies),
        linger_ms=table.linger,
        shuffle=table.shuffle,
        patience_ms=table.patience,
        remember_ms=table.remember,
        remembered=table.remembered,
    )
