"""Wait for a broker to answer: a worker may start before it, or while it is down."""

import asyncio
import logging
from typing import Final

from aiokafka.errors import KafkaConnectionError

from ldpstream.agents.config import KafkaConfig
from ldpstream.agents.kafka.connections import Connections
from ldpstream.agents.kafka.probe import why_not
from ldpstream.agents.kafka.refusals import describe_error
from ldpstream.agents.served.health import BrokerWatch

_RETRY_SECONDS: Final = 1.0

log = logging.getLogger(__name__)


async def wait_for_broker(kafka: KafkaConfig, watch: BrokerWatch) -> None:
    """Wait until a broker answers; if it does not at once, `watch` and one line of the log say so.

    Raises:
        ClientOptionError: if the settings are impossible.
    """
    while True:
        connections = Connections(kafka)
        try:
            await connections.admin()
            break
        except KafkaConnectionError as error:
            if await why_not(kafka.bootstrap, kafka.options) is not None:
                break  # It answers, but refuses us: connecting to it will report why.
            log.debug("no broker yet: %r", error)
        finally:
            await connections.close()
        if not watch.silent:
            log.warning("%s The worker waits for it", describe_error(KafkaConnectionError(), kafka))
        watch.silent = True
        await asyncio.sleep(_RETRY_SECONDS)
    if watch.silent:
        watch.silent = False
        log.info("a broker answers at %s", kafka.bootstrap)
