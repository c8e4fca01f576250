"""`ldpstream finals`: print the documents of final windows, or store them in a file."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Final

import click
from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from pydantic import ValidationError

from ldpstream.agents.broker.metadata import describe
from ldpstream.agents.broker.offsets import end_offsets
from ldpstream.agents.cli.terminal import broker
from ldpstream.agents.cli.terminal.common import count, load_collection, print_data
from ldpstream.agents.cli.terminal.errors import Failed, Refused
from ldpstream.agents.config import CollectionConfig, KafkaConfig
from ldpstream.agents.document.model import EstimateDocument
from ldpstream.agents.document.sinks import check_target, store_documents
from ldpstream.mechanisms.base.times import format_duration, parse_time

_POLL_MS: Final = 1_000
_TOGETHER: Final = 1_000
"""The most finals stored at once: a file is written as a whole each time."""


def print_finals(config_file: str, name: str, *, to: str | None, size: str | None) -> None:
    """Print the documents of final windows, or store them in a file."""
    config, collection = load_collection(config_file, name)
    try:
        if to is not None:
            check_target(to)
        stored = broker.run(
            _store_all(config.kafka, collection, to, size=size),
            config.kafka,
            config_file,
        )
    except ValueError as error:
        raise Refused(f"--to: {error}") from error
    except ImportError as error:
        raise Failed(str(error)) from error
    if to is not None:
        click.echo(f"{count(stored, 'final window')} stored", err=True)


async def _store_all(
    kafka: KafkaConfig,
    collection: CollectionConfig,
    to: str | None,
    *,
    size: str | None,
) -> int:
    topic, label = collection.topics.estimates, size or collection.window.identity.label
    async with broker.admin(kafka) as admin:
        states = await describe(admin, [topic])
    if topic not in states:
        raise Failed(f"topic {topic} does not exist: start a worker first, which creates it")
    windows, sizes = set(), {label}
    async with broker.reader(kafka) as reader:
        partitions = [TopicPartition(topic, p) for p in range(states[topic].partitions)]
        async for batch in _finals(reader, partitions):
            for other in sorted({_size(document) for document in batch} - sizes):
                sizes.add(other)
                click.echo(
                    f"{collection.name}: left out the windows of {other} that {topic} also has: "
                    f"--size '{other}' takes them",
                    err=True,
                )
            documents = [document for document in batch if _size(document) == label]
            if to is None:
                for document in documents:
                    print_data(document.to_json() + b"\n")
            else:
                # In a thread: a long file may take longer than a broker waits for its reader.
                await asyncio.to_thread(_store, documents, to)
            windows |= {(stored.fingerprint, stored.window) for stored in documents}
    return len(windows)


def _store(documents: Sequence[EstimateDocument], to: str) -> None:
    try:
        store_documents(documents, to)
    except OSError as error:
        raise Refused(f"--to: cannot write {to}: {error.strerror or error}") from error


async def _finals(
    reader: AIOKafkaConsumer, partitions: list[TopicPartition]
) -> AsyncIterator[list[EstimateDocument]]:
    """Yield finals in the topic's order, up to its present end."""
    ends = await end_offsets(reader, partitions)
    await reader.seek_to_beginning(*partitions)
    batch: list[EstimateDocument] = []
    while True:
        at_end = [await reader.position(partition) >= ends[partition] for partition in partitions]
        if batch and (all(at_end) or len(batch) >= _TOGETHER):
            yield batch
            batch = []
        if all(at_end):
            return
        for records in (await reader.getmany(timeout_ms=_POLL_MS)).values():
            parsed = [_parse(record) for record in records]
            batch += [document for document in parsed if document is not None and document.final]


def _size(document: EstimateDocument) -> str:
    """Return of which windows a final is; by its length where an earlier release wrote it."""
    if document.size is not None or document.window is None:
        return document.size or ""
    window = document.window
    return format_duration(parse_time(window.end) - parse_time(window.start))


def _parse(record: ConsumerRecord[bytes, bytes]) -> EstimateDocument | None:
    try:
        return EstimateDocument.model_validate_json(record.value or b"")
    except ValidationError:
        click.echo(f"{record.topic}: offset {record.offset}: not an estimate, skipped", err=True)
        return None
