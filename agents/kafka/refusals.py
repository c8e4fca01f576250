"""Explain errors of a broker to the user: one line with the setting and what to do.

An error that no retry is expected to mend is logged once, however often it comes (`Complaints`).
"""

import logging
from collections.abc import Hashable, Iterable
from typing import Final

from aiokafka.errors import (
    AuthenticationFailedError,
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    InvalidTimestampError,
    KafkaConnectionError,
    KafkaError,
    MessageSizeTooLargeError,
    SaslAuthenticationFailed,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
    UnknownError,
)

from ldpstream.agents.config import KafkaConfig
from ldpstream.agents.kafka.declare import TopicError
from ldpstream.agents.kafka.probe import why_not

_LOGIN: Final = (AuthenticationFailedError, SaslAuthenticationFailed)
_PERMISSION: Final = (
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
)

log = logging.getLogger(__name__)


class BrokerUnavailableError(RuntimeError):
    """No broker is usable; the message says which one, why, and what to do."""


def no_idempotence(kafka: KafkaConfig) -> BrokerUnavailableError:
    """Return the error for a broker without idempotent producers, such as the embedded one."""
    return BrokerUnavailableError(
        f"the broker at {kafka.bootstrap} has no idempotent producer: set "
        "enable_idempotence = false under [kafka] if it is a development broker"
    )


def not_permitted(kafka: KafkaConfig, missing: Iterable[str]) -> BrokerUnavailableError:
    """Return the error for missing permissions, one sentence each."""
    return BrokerUnavailableError(
        f"the broker at {kafka.bootstrap} does not permit it: {'; '.join(missing)}"
    )


async def explain(error: TopicError | KafkaError, kafka: KafkaConfig) -> str:
    """Return what an error means; if no connection was made, make one to find out why.

    Raises:
        ClientOptionError: if the settings are impossible.
    """
    found = None
    if isinstance(error, KafkaConnectionError):
        found = await why_not(kafka.bootstrap, kafka.options)
    return found or describe_error(error, kafka)


def describe_error(error: Exception, kafka: KafkaConfig) -> str:
    """Return what a broker's error means for the user, on one line."""
    if isinstance(error, TopicError):
        return str(error)
    if isinstance(error, KafkaConnectionError):
        return (
            f"no broker answers at {kafka.bootstrap}: is it running, and are kafka.bootstrap or "
            "LDPSTREAM_KAFKA_BOOTSTRAP right?"
        )
    if isinstance(error, _LOGIN):
        return f"the broker at {kafka.bootstrap} refuses to log us in: {error}"
    if isinstance(error, _PERMISSION):
        return (
            f"the broker at {kafka.bootstrap} does not permit it: {_one_line(error)}; "
            "`ldpstream check` lists what is missing"
        )
    if isinstance(error, MessageSizeTooLargeError):
        return (
            f"the broker at {kafka.bootstrap} refuses a batch as too large: put fewer reports into "
            "a message (send --batch), lower kafka.max_batch_size, or raise max.message.bytes of "
            "the topic"
        )
    if isinstance(error, InvalidTimestampError):
        return (
            f"the broker at {kafka.bootstrap} refuses the time of sending, the clock's on this "
            "machine: set it right (message.timestamp.after.max.ms of the topic is how far ahead "
            "it may be)"
        )
    if isinstance(error, UnknownError):
        return (
            f"the broker at {kafka.bootstrap} failed without saying why; one that has no "
            "idempotent producers needs kafka.enable_idempotence = false"
        )
    return f"the broker at {kafka.bootstrap} failed: {_one_line(error)}"


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


class Complaints:
    """What has been logged about topics or partitions that cannot be written."""

    def __init__(self) -> None:
        self._of: dict[Hashable, str] = {}

    def note(self, key: Hashable, error: KafkaError, what: str) -> None:
        """Log a permanent error of `what` once, however many partitions have it."""
        if error.retriable:
            return
        if repr(error) not in self._of.values():
            log.warning("%s cannot be written and is tried again: %r", what, error)
        self._of[key] = repr(error)

    def over(self, key: Hashable) -> None:
        """Forget an error, so that it is logged again if it comes back."""
        self._of.pop(key, None)
