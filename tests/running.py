"""Clients that run for the length of a `with` block."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

Client = TypeVar("Client", AIOKafkaConsumer, AIOKafkaProducer)


@asynccontextmanager
async def running(client: Client) -> AsyncIterator[Client]:
    """Start a client, and stop it at the end of the block."""
    await client.start()
    try:
        yield client
    finally:
        await client.stop()
