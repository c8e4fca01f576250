"""A gateway over a broker of the test's own making, and uploads to it."""

import asyncio
import secrets
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from aiohttp import ClientSession
from aiokafka.errors import KafkaTimeoutError

from ldpstream.agents.config import Config, read_config
from ldpstream.agents.device import Sender
from ldpstream.agents.edge.gateway_app import MEDIA_TYPE, GatewayMetrics, GatewayServices
from ldpstream.agents.edge.gateway_process import taking_uploads
from ldpstream.agents.edge.upload_keys import UploadKeys
from ldpstream.agents.edge.uploads import Uploads
from ldpstream.agents.web.requests import Access
from ldpstream.mechanisms import CollectionSpec, decode_frame

NOW_MS = 1_795_255_200_000
KEY = "0123456789abcdef" * 2
TABLES: dict[str, Any] = {
    "collection": {
        "modes": {
            "mechanism": "randomized-response",
            "epsilon": 1.0,
            "domain": {"values": ["walk", "bike", "bus"]},
            "window": {"size": "1h"},
        },
        "ages": {
            "mechanism": "l1-bits",
            "epsilon": 1.0,
            "domain": {"size": 20},
            "window": {"size": "1h"},
        },
    }
}


class Broker:
    """The frames that a broker would hold, in order; it can be slow, or refuse."""

    def __init__(self) -> None:
        self.frames: list[tuple[str, bytes]] = []
        self.failing = 0
        self.open = asyncio.Event()
        self.open.set()

    def sender(self, spec: CollectionSpec) -> "SenderTo":
        return SenderTo(spec, self)

    def reports(self, spec: CollectionSpec) -> int:
        size = spec.mechanism.report_bytes
        return sum(
            int(decode_frame(f, fingerprint=spec.fingerprint, report_bytes=size).counts.sum())
            for topic, f in self.frames
            if topic == spec.topic
        )


class SenderTo(Sender):
    """A sender whose broker is the test."""

    def __init__(self, spec: CollectionSpec, broker: Broker) -> None:
        super().__init__(spec, "nowhere:1")
        self.broker = broker

    def sharing(self, spec: CollectionSpec) -> "SenderTo":
        return SenderTo(spec, self.broker)

    async def produce(self, frame: bytes) -> None:
        await self.broker.open.wait()
        if self.broker.failing:
            self.broker.failing -= 1
            raise KafkaTimeoutError
        self.broker.frames.append((self.spec.topic, frame))


@dataclass
class Gateway:
    """A running gateway and what it works with."""

    url: str
    config: Config
    broker: Broker
    served: GatewayServices
    session: ClientSession

    def spec(self, name: str = "modes") -> CollectionSpec:
        return self.config.collections[name].spec

    def frame(self, n: int = 1, *, name: str = "modes", at_ms: int = NOW_MS) -> bytes:
        spec = self.spec(name)
        return spec.frame(np.arange(n) % 3 if name == "ages" else ["bus"] * n, times_ms=[at_ms] * n)

    async def post(
        self, body: bytes, key: str | None = None, *, name: str = "modes", **headers: str
    ) -> tuple[int, Any]:
        given = {
            "Content-Type": MEDIA_TYPE,
            "Idempotency-Key": key or secrets.token_hex(16),
            **{one.replace("_", "-"): value for one, value in headers.items()},
        }
        url = f"{self.url}/v1/collections/{name}/reports"
        async with self.session.post(url, data=body, headers=given) as answer:
            said = await answer.json(content_type=None)
            if answer.status != 200:
                assert answer.content_type == "application/problem+json"
                assert set(said) == {"type", "title", "status", "detail"}
                assert said["status"] == answer.status
                assert said["detail"]
                retried = answer.status in (429, 503)
                assert ("Retry-After" in answer.headers) is retried
            return answer.status, said


@asynccontextmanager
async def gateway(
    folder: Path,
    broker: Broker | None = None,
    *,
    tls: ssl.SSLContext | None = None,
    collections: dict[str, Any] | None = None,
    **settings: Any,
) -> AsyncIterator[Gateway]:
    """Serve a gateway for the length of a block; `settings` are keys of `[gateway]`."""
    table = {"linger": "5ms", "patience": "1m", **settings}
    tables = {"collection": TABLES["collection"] | (collections or {}), "gateway": table}
    config = read_config(tables, base=folder, environment={})
    own, broker = config.gateway, broker or Broker()
    metrics = GatewayMetrics(list(config.collections))
    async with AsyncExitStack() as stack:
        remembered = stack.enter_context(
            UploadKeys(folder / "gateway.sqlite", most=own.remembered, keep_ms=own.remember_ms)
        )
        uploads = await stack.enter_async_context(
            Uploads(
                config.collections,
                broker.sender(next(iter(config.collections.values())).spec),
                remembered,
                config=own,
                accepted=metrics.accepted,
            )
        )
        token = None if own.token is None else own.token.reveal().encode()
        served = GatewayServices(
            collections=config.collections,
            uploads=uploads,
            metrics=metrics,
            origins=own.origins,
            upload_bytes=own.upload_bytes,
            upload_access=Access(token=token, local=True, trusted_proxies=own.trusted_proxies),
        )
        url = await stack.enter_async_context(
            taking_uploads(served, own.model_copy(update={"http": "127.0.0.1:0"}), tls=tls)
        )
        session = await stack.enter_async_context(ClientSession())
        yield Gateway(url, replace(config), broker, served, session)
