"""`[gateway]`: where devices that cannot speak Kafka upload their reports."""

from typing import Annotated, Final

from pydantic import AfterValidator, Field

from ldpstream.agents.config.durations import DAY_MS, SECOND_MS, Duration, PositiveDuration
from ldpstream.agents.config.errors import ConfigError, refused
from ldpstream.agents.config.serving import Address, SecretKey, ServingTable, check_origin
from ldpstream.mechanisms.base.times import format_duration

_UPLOAD_BYTES_LIMIT: Final = 500_000
"""An upload must fit into one frame, and a frame into a Kafka message of the default size."""
ANY_ORIGIN: Final = "*"

_LONGEST_LINGER_MS: Final = 60_000


def _origin(value: str) -> str:
    return value if value == ANY_ORIGIN else check_origin(value, alternative=', or "*"')


def _linger(value: int) -> int:
    if value > _LONGEST_LINGER_MS:
        raise refused("at most 1m", format_duration(value))
    return value


class GatewayConfig(ServingTable):
    """`[gateway]`."""

    http: Address = Field(
        default="127.0.0.1:8080", description="Address for uploads; port 0 takes any free one"
    )
    token: SecretKey = Field(
        default=None,
        description="The bearer token of uploads; none where devices hold no secret",
        examples=[{"env": "LDPSTREAM_UPLOAD_TOKEN"}],
    )
    origins: list[Annotated[str, AfterValidator(_origin)]] = Field(
        default=[],
        description='Origins of web pages that may upload; "*" is any',
        examples=[["https://survey.example"]],
    )
    upload_bytes: int = Field(
        default=256 << 10, ge=1_000, le=_UPLOAD_BYTES_LIMIT, description="Largest body in bytes"
    )
    queue: int = Field(
        default=10_000, ge=1, le=1_000_000, description="Most uploads waiting for the broker"
    )
    queue_bytes: int = Field(
        default=64 << 20, ge=_UPLOAD_BYTES_LIMIT, le=1 << 36, description="Most bytes waiting"
    )
    connections: int = Field(default=2_000, ge=1, le=100_000, description="Most open connections")
    connections_per_peer: int = Field(
        default=500,
        ge=1,
        le=100_000,
        description="Most per address; behind trusted proxies, requests per client",
    )
    linger_ms: Annotated[Duration, AfterValidator(_linger)] = Field(
        alias="linger",
        default=50,
        description="How long an upload waits for others to share its frame",
    )
    patience_ms: PositiveDuration = Field(
        alias="patience",
        default=10 * SECOND_MS,
        description="How long one request waits for the broker",
    )
    shuffle: int = Field(
        default=0,
        ge=0,
        le=100_000,
        description="Send reports in sorted batches of at least this many, all with one time, at "
        "most one per upload; 0: send them as they come",
    )
    remember_ms: PositiveDuration = Field(
        alias="remember",
        default=7 * DAY_MS,
        description="How long to keep the key of an acknowledged upload",
    )
    remembered: int = Field(default=1_000_000, ge=1, le=1_000_000_000, description="Most keys kept")

    def check_together(self, path: str) -> None:
        """Also refuse a queue too small for two batches."""
        super().check_together(path)
        if 2 * self.shuffle > self.queue:
            raise ConfigError(
                f"{path}.queue",
                f"expected at least twice shuffle ({self.shuffle:,}), whose batches wait in the "
                f"queue, got {self.queue:,}",
            )
