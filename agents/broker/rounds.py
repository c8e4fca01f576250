"""The rounds of unknown words, which `ldpstream discover` publishes to devices."""

import json

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from ldpstream.agents.broker.offsets import end_offsets
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.domains.words import Round
from ldpstream.mechanisms.wire.rounds import in_round, round_document, words_of
from ldpstream.mechanisms.wire.spec import CollectionSpec

_POLL_MS = 500


async def read_rounds(
    reader: AIOKafkaConsumer, topic: str, spec: CollectionSpec
) -> dict[int, CollectionSpec]:
    """Return the spec of each round in a topic that exists, by the start of its window.

    Ignores anything but rounds of the spec, and a second round for a window.
    """
    partition = TopicPartition(topic, 0)
    ends = await end_offsets(reader, [partition])
    await reader.seek_to_beginning(partition)
    rounds: dict[int, CollectionSpec] = {}
    while await reader.position(partition) < ends[partition]:
        for records in (await reader.getmany(timeout_ms=_POLL_MS)).values():
            for record in records:
                parsed = _parse(spec, record.value or b"")
                if parsed is not None and (question := words_of(parsed).round) is not None:
                    rounds.setdefault(question.start_ms, parsed)
    return rounds


def _parse(spec: CollectionSpec, value: bytes) -> CollectionSpec | None:
    try:
        return in_round(spec, json.loads(value))
    except (SpecError, ValueError, RecursionError):
        return None


async def publish_round(
    producer: AIOKafkaProducer, topic: str, spec: CollectionSpec, question: Round
) -> None:
    """Publish a round, and return when the broker has it."""
    document = json.dumps(round_document(spec, question)).encode()
    await producer.send_and_wait(topic, document, partition=0)
