"""One producer for everything that a worker writes, replaced when it can write no more.

An idempotent producer that has lost its place in a partition's sequence (its state on the broker
expired, say) fails from then on. What it has sent may land later all the same; the state machine is
made for that, so a new producer can go on at once.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from aiokafka import AIOKafkaProducer
from aiokafka.errors import (
    KafkaError,
    MessageSizeTooLargeError,
    TopicAuthorizationFailedError,
    UnknownError,
)

from ldpstream.agents import clients

_STOP_SECONDS: Final = 2.0
# These say something about the message or the topic, not about the producer.
_HARMLESS: Final = (MessageSizeTooLargeError, TopicAuthorizationFailedError)

log = logging.getLogger(__name__)


class NoIdempotenceError(RuntimeError):
    """The broker knows no idempotent producers."""


class LastingProducer:
    """Sends messages one by one, each of them acknowledged by all replicas."""

    def __init__(self, bootstrap: str, options: Mapping[str, Any]) -> None:
        self._bootstrap = bootstrap
        self._options = options
        self._producer: AIOKafkaProducer | None = None
        self._lock = asyncio.Lock()

    async def start(self) -> None:
        """Connect.

        Raises:
            NoIdempotenceError: if the broker does not support what is configured.
            KafkaError: if it does not answer.
        """
        producer = clients.producer(self._bootstrap, self._options)
        try:
            await producer.start()
        except UnknownError as error:
            await _stop(producer)
            raise NoIdempotenceError from error
        except BaseException:
            await _stop(producer)
            raise
        self._producer = producer

    async def stop(self) -> None:
        """Disconnect; what has not been acknowledged may or may not arrive."""
        producer, self._producer = self._producer, None
        if producer is not None:
            await _stop(producer)

    async def send(
        self,
        topic: str,
        partition: int | None,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes]] = (),
    ) -> None:
        """Send a message and wait until it is acknowledged.

        Raises:
            KafkaError: if it may not have arrived.
        """
        async with self._lock:
            if self._producer is None:
                await self._start_anew()
        producer = self._producer
        assert producer is not None
        try:
            sent = await producer.send(
                topic, value=value, key=key, partition=partition, headers=list(headers)
            )
            await sent
        except KafkaError as error:
            if not error.retriable and not isinstance(error, _HARMLESS):
                await self._replace(producer, error)
            raise

    async def _start_anew(self) -> None:
        try:
            await self.start()
        except clients.ClientOptionError as error:
            # A file with a secret or a certificate has gone since the start: it may come back.
            raise KafkaError(str(error)) from error

    async def _replace(self, producer: AIOKafkaProducer, error: KafkaError) -> None:
        """Let the next message be sent by a new producer; of many failures one is enough."""
        if self._producer is producer:
            self._producer = None
            log.debug("the producer is replaced after %r", error)
            await _stop(producer)


async def _stop(producer: AIOKafkaProducer) -> None:
    """Stop a producer, whatever it says: with its broker away it may wait long."""
    with suppress(asyncio.CancelledError, TimeoutError, KafkaError):
        await asyncio.wait_for(producer.stop(), _STOP_SECONDS)
