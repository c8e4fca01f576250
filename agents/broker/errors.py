"""The broker's errors by their codes and by the names that Kafka gives them."""

from typing import Final

from aiokafka.errors import BrokerResponseError, KafkaError, kafka_errors

from ldpstream.agents.broker.patches.error_names import ERROR_NAMES

TOPIC_DELETION_DISABLED: Final = 73
GROUP_MAX_SIZE_REACHED: Final = 81
FENCED_INSTANCE_ID: Final = 82
INVALID_RECORD: Final = 87


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
    """Note in an error of a producer to which topic it was writing: aiokafka does not say."""
    error.add_note(topic)


def written_topic(error: KafkaError) -> str:
    """Return the topic that `name_topic` noted; empty if none was."""
    return next(iter(getattr(error, "__notes__", ())), "")
