"""Explain errors of a broker to the user: one line with the setting and what to do.

An error that no retry is expected to mend is logged once, however often it comes (`Complaints`).
What to say of an error stands in a table by its code; names of codes are those that Kafka gives
them.
"""

import logging
from collections.abc import Hashable, Iterable, Mapping
from typing import Final

from aiokafka.errors import (
    AuthenticationFailedError,
    BrokerResponseError,
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    GroupCoordinatorNotAvailableError,
    InconsistentGroupProtocolError,
    InvalidGroupIdError,
    InvalidSessionTimeoutError,
    InvalidTimestampError,
    KafkaConnectionError,
    KafkaError,
    MessageSizeTooLargeError,
    NodeNotReadyError,
    NotEnoughReplicasAfterAppendError,
    NotEnoughReplicasError,
    SaslAuthenticationFailed,
    TopicAuthorizationFailedError,
    UnknownError,
    kafka_errors,
)

from ldpstream.agents.broker.patches.error_names import ERROR_NAMES
from ldpstream.agents.broker.probe import why_not
from ldpstream.agents.broker.topics import TopicError
from ldpstream.agents.config import KafkaConfig

TOPIC_DELETION_DISABLED: Final = 73
GROUP_MAX_SIZE_REACHED: Final = 81
FENCED_INSTANCE_ID: Final = 82
INVALID_RECORD: Final = 87
_UNREACHED: Final = (KafkaConnectionError, NodeNotReadyError)
_NO_LOGIN: Final = "refuses to log us in: {error}"
_NOT_PERMITTED: Final = "does not permit it: {error}; `ldpstream check` lists what is missing"
_FEW_REPLICAS: Final = (
    "fewer replicas are in sync than min.insync.replicas of the topic asks for: bring brokers "
    "back, or lower it"
)
_SENTENCES: Final[Mapping[int | None, str]] = {
    SaslAuthenticationFailed.errno: _NO_LOGIN,
    ClusterAuthorizationFailedError.errno: _NOT_PERMITTED,
    GroupAuthorizationFailedError.errno: _NOT_PERMITTED,
    TopicAuthorizationFailedError.errno: _NOT_PERMITTED,
    MessageSizeTooLargeError.errno: (
        "refuses a batch as too large: put fewer reports into a message (send --batch), lower "
        "kafka.max_batch_size, or raise max.message.bytes of the topic"
    ),
    InvalidTimestampError.errno: (
        "refuses the time of sending, the clock's on this machine: set it right "
        "(message.timestamp.after.max.ms of the topic is how far ahead it may be)"
    ),
    UnknownError.errno: (
        "failed without saying why; one that has no idempotent producers needs "
        "kafka.enable_idempotence = false"
    ),
    NotEnoughReplicasError.errno: "stores nothing ({name}): " + _FEW_REPLICAS,
    NotEnoughReplicasAfterAppendError.errno: "stores nothing ({name}): " + _FEW_REPLICAS,
    TOPIC_DELETION_DISABLED: (
        "deletes no topics ({name}): set delete.topic.enable = true on the broker for as long as "
        "this takes"
    ),
    INVALID_RECORD: (
        "refuses a record ({name}), as it does one without a key where the topic's cleanup.policy "
        "holds compact: set that to delete"
    ),
}
"""What a broker does, by the code of its error."""
NO_COORDINATOR: Final = (
    "no broker keeps the offsets of groups: look at the broker's log, and whether it has as many "
    "brokers as offsets.topic.replication.factor asks for"
)
_OF_GROUPS: Final = {
    GroupAuthorizationFailedError.errno: "give it permission to read the group",
    InconsistentGroupProtocolError.errno: (
        "members of another kind use the group: end them, or give the workers a group of their own "
        "(worker.id; in your own Faust app, the app's id)"
    ),
    GroupCoordinatorNotAvailableError.errno: NO_COORDINATOR,
    InvalidGroupIdError.errno: "give the group another name (worker.id)",
    InvalidSessionTimeoutError.errno: (
        "set kafka.session_timeout_ms, {session_ms} ms here, to a number between "
        "group.min.session.timeout.ms and group.max.session.timeout.ms of the broker"
    ),
    GROUP_MAX_SIZE_REACHED: (
        "the group has as many members as the broker's group.max.size allows: raise that, or end "
        "another worker"
    ),
    FENCED_INSTANCE_ID: (
        "another process has joined as the same instance: give each worker a worker.instance of "
        "its own"
    ),
}
"""What to do about a refused member of a group, by the code of the broker's error."""
_OF_TOPICS: Final = {
    TopicAuthorizationFailedError.errno: "give the worker permission to write",
    MessageSizeTooLargeError.errno: (
        "raise max.message.bytes of the topic, or lower kafka.max_batch_size"
    ),
    NotEnoughReplicasError.errno: _FEW_REPLICAS,
    NotEnoughReplicasAfterAppendError.errno: _FEW_REPLICAS,
    InvalidTimestampError.errno: (
        "set the clock of this machine right, or raise message.timestamp.after.max.ms of the topic"
    ),
    INVALID_RECORD: (
        "a compacted topic takes no record without a key: set its cleanup.policy to delete"
    ),
}
"""What to do about a topic that takes nothing, by the code of the broker's error."""

log = logging.getLogger(__name__)


def error_code(error: BaseException) -> int | None:
    """Return the broker's code of an error, None if it is not the broker's.

    aiokafka's group coordinator quotes an error that it did not expect in the text of another.
    """
    if isinstance(error, BrokerResponseError):
        return error.errno
    if not isinstance(error, KafkaError):
        return None
    text = str(error)
    return next((code for code, kind in kafka_errors.items() if repr(kind()) in text), None)


def error_name(code: int) -> str:
    """Return an error's name, as brokers and their documentation write it."""
    kind = kafka_errors.get(code)
    return ERROR_NAMES.get(code, f"error {code}") if kind is None else kind.message


def name_topic(error: KafkaError, topic: str) -> None:
    """Add to a producer's error the topic that it was writing to, which aiokafka does not name."""
    error.add_note(topic)


def written_topic(error: KafkaError) -> str:
    """Return the topic that `name_topic` added; empty if none was."""
    return next(iter(getattr(error, "__notes__", ())), "")


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
    """Return what an error means; if no connection was made, make one to find out why."""
    reason = None
    if isinstance(error, _UNREACHED):
        reason = await why_not(kafka.bootstrap, kafka.options)
    return reason or describe_error(error, kafka)


def describe_error(error: Exception, kafka: KafkaConfig) -> str:
    """Return what a broker's error means for the user, on one line."""
    if isinstance(error, TopicError):
        return str(error)
    if isinstance(error, _UNREACHED):
        port = "" if ":" in kafka.bootstrap else ", port 9092"
        return (
            f"no broker answers at {kafka.bootstrap}{port}: is it running, and are "
            "kafka.bootstrap or LDPSTREAM_KAFKA_BOOTSTRAP right?"
        )
    code, text = error_code(error), _one_line(error)
    sentence = _SENTENCES.get(code, "failed: {error}")
    if isinstance(error, AuthenticationFailedError):
        sentence = _NO_LOGIN
    named = sentence.format(error=text, name=text if code is None else error_name(code))
    return f"the broker at {kafka.bootstrap} {named}"


def describe_refused_member(error: KafkaError, group_id: str, *, session_ms: int) -> str:
    """Return why a broker refuses this worker in its group, and the setting to change."""
    code = error_code(error)
    if code is None:
        return f"this worker cannot join the group {group_id}: {_one_line(error)}"
    what_to_do = _OF_GROUPS.get(code, "the broker's log may say more").format(session_ms=session_ms)
    return (
        f"the broker refuses this worker in the group {group_id} ({error_name(code)}), so it gets "
        f"no partitions: {what_to_do}"
    )


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def describe_refused_write(error: KafkaError) -> str:
    """Return why a topic takes nothing, and the setting to change."""
    code, topic = error_code(error), written_topic(error)
    if code is None:
        return f"topic {topic}: {_one_line(error)}"
    what_to_do = _OF_TOPICS.get(code, "the broker's log may say more")
    return f"the broker refuses it for topic {topic} ({error_name(code)}): {what_to_do}"


class Complaints:
    """What has been logged about topics or partitions that cannot be written.

    `title` is what they belong to, in messages.
    """

    def __init__(self, title: str = "") -> None:
        self._prefix = f"{title}: " if title else ""
        self._of: dict[Hashable, tuple[str, str]] = {}

    @property
    def problems(self) -> list[str]:
        """What cannot be written now, once for each cause."""
        return [*{cause: problem for problem, cause in reversed(self._of.values())}.values()]

    def report_error(self, key: Hashable, error: KafkaError, what: str) -> None:
        """Log an error that does not pass by itself once, however many partitions have it."""
        if error.retriable and error_code(error) not in _OF_TOPICS:
            return
        cause = describe_refused_write(error)
        problem = f"{what} cannot be written and is tried again: {cause}"
        if cause not in (reported for _, reported in self._of.values()):
            log.warning("%s%s", self._prefix, problem)
        self._of[key] = problem, cause

    def clear(self, key: Hashable) -> None:
        """Forget an error, so that it is logged again if it comes back."""
        self._of.pop(key, None)
