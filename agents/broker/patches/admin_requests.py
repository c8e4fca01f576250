"""Send requests that aiokafka's admin client knows but does not offer, and see its brokers.

Seen in aiokafka 0.14. Nothing is installed.
"""

from collections.abc import Collection
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient


async def send_request(admin: AIOKafkaAdminClient, request: Any) -> Any:
    """Send any request to some broker, and return its answer."""
    return await admin._send_request(request)  # noqa: SLF001 (no public request)


def known_brokers(admin: AIOKafkaAdminClient) -> Collection[Any]:
    """Return the brokers that a started client knows, without a request."""
    brokers: Collection[Any] = admin._client.cluster.brokers()  # noqa: SLF001 (not offered)
    return brokers


def any_broker(admin: AIOKafkaAdminClient) -> int | None:
    """Return the id of one of the brokers that a started client knows."""
    return next((int(broker.nodeId) for broker in known_brokers(admin)), None)
