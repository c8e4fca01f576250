"""`send --id`: count an input once, however often sending it is killed and repeated.

Frames are drawn into a journal first, then sent in transactions. Each transaction also commits the
number of frames sent so far, as the offset of a consumer group of the input's own, so the broker
knows exactly which frames are in the topic. Starting the transactional producer aborts what a
killed process left open, and keeps it from committing later.
"""

import re
from collections.abc import Callable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, Final

from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError, ProducerFenced, UnknownError
from aiokafka.structs import OffsetAndMetadata
from rich.console import Console

from ldpstream.agents.cli.once.journal import Digested, Input, Journal
from ldpstream.agents.config import CollectionConfig, KafkaConfig
from ldpstream.agents.kafka.delivery import Delivery
from ldpstream.agents.kafka.metadata import describe
from ldpstream.agents.kafka.record_time import now_ms
from ldpstream.agents.kafka.refusals import explain
from ldpstream.agents.kafka.transactions import committed
from ldpstream.agents.terminal import broker
from ldpstream.agents.terminal.chunks import Chunk, frames
from ldpstream.agents.terminal.common import count
from ldpstream.agents.terminal.errors import Failed, Refused
from ldpstream.agents.terminal.values import source_name, unreadable

FOLDER: Final = "ldpstream-sent"
_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,100}")
# By default brokers forget the offsets of a group without members after a week.
_DOUBT_MS: Final = 86_400_000

Reading = Callable[[BinaryIO], Iterator[Chunk]]


def journal_path(
    config_file: str, collection: CollectionConfig, once: str, given: Path | None
) -> Path:
    """Return the file of an input's journal.

    Raises:
        Refused: for an invalid name.
    """
    if not _NAME.fullmatch(once) or once.startswith("."):
        raise Refused(
            "--id: expected letters, digits, dots, dashes and underscores (not '.' first)"
        )
    folder = Path(config_file).parent / FOLDER if given is None else given
    return folder / collection.name / f"{once}.journal"


class Once:
    """Sends one input under its name."""

    def __init__(
        self,
        kafka: KafkaConfig,
        collection: CollectionConfig,
        name: str,
        journal: Journal,
        *,
        console: Console,
    ) -> None:
        self._kafka = kafka
        self._collection = collection
        self._name = name
        self._journal = journal
        self._console = console
        self._topic = collection.topics.source
        # The id of both the transactions and the consumer group.
        self._id = f"{self._topic}.sent.{name}"

    async def send(self, stream: BinaryIO, reading: Reading, *, batch: int) -> str:
        """Draw and send what has not been drawn and sent; return what to print.

        Raises:
            Refused: where another input has been sent under this name, or the collection is no
                longer what the reports were drawn for.
            Failed: where the broker has no transactions, or cannot say what it has.
            KafkaError: where it does not answer; the same command resumes from there.
        """
        source = Digested(stream)
        drawn = self._journal.read()
        if drawn is not None:
            try:
                digest = source.digest()
            except OSError as error:
                raise unreadable(source_name(stream), error) from error
            self._check(drawn, digest)
            if drawn.sent == drawn.frames:
                return f"{self._name} has been sent: {_total(drawn)} acknowledged before"
        if self._kafka.options.get("enable_idempotence") is False:
            raise Failed(self._no_transactions("kafka.enable_idempotence = false says so"))
        partitions = await broker.source_partitions(self._kafka, self._collection)
        async with broker.admin(self._kafka) as admin:
            topic_id = (await describe(admin, [self._topic]))[self._topic].id
        topic_id_text = None if topic_id is None else str(topic_id)
        if drawn is None:
            drawn = self._draw(source, reading, topic_id_text, batch=batch)
        elif drawn.topic_id != topic_id_text:
            raise Refused(
                f"--id: the topic {self._topic} was created again, or belongs to another broker, "
                f"since {self._name} was begun; choose another name"
            )
        return await self._send(drawn, partitions)

    def _check(self, drawn: Input, digest: bytes) -> None:
        if not drawn.came_from(digest):
            raise Refused(
                f"--id: {self._name} was begun with a different input: choose another name for "
                "this one"
            )
        spec = self._collection.spec
        if drawn.fingerprint != spec.fingerprint.hex() or drawn.topic != self._topic:
            raise Refused(
                f"--id: {self._name} was drawn for {drawn.topic} and fingerprint "
                f"{drawn.fingerprint}, got {self._topic} and {spec.fingerprint.hex()}: finish it "
                "with the configuration that it was begun with"
            )

    def _draw(
        self, source: Digested, reading: Reading, topic_id: str | None, *, batch: int
    ) -> Input:
        spec = self._collection.spec
        with BufferedReader(source) as stream, self._console.status("drawing reports"):
            self._journal.draw(
                (
                    (frame, reports)
                    for chunk in broker.interruptibly(reading(stream))
                    for frame, reports, _ in frames(spec, chunk, batch)
                ),
                source,
                topic=self._topic,
                topic_id=topic_id,
                fingerprint=spec.fingerprint.hex(),
            )
        drawn = self._journal.read()
        assert drawn is not None
        return drawn

    async def _send(self, drawn: Input, partitions: int) -> str:
        try:
            async with broker.producer(self._kafka, transactional_id=self._id) as producer:
                # Starting the producer has aborted what an earlier process left open.
                start = await self._settle(drawn)
                before = self._reports(drawn, start)
                await producer.partitions_for(self._topic)
                with self._console.status(f"sending to {self._topic}") as status:
                    while start < drawn.frames:
                        start = await self._transaction(producer, drawn, start, partitions)
                        done = self._reports(drawn, start)
                        status.update(f"{done:,} reports acknowledged")
        except UnknownError as error:
            raise Failed(self._no_transactions("it failed without saying why")) from error
        except ProducerFenced as error:
            raise Failed(f"--id: another process took over sending {self._name}") from error
        except KafkaError as error:
            message = await explain(error, self._kafka)
            raise Failed(f"{message}; run the same command again to resume") from error
        said = f"{_total(drawn)} acknowledged"
        return f"{said}, {before} of them before" if before else said

    def _no_transactions(self, why: str) -> str:
        return (
            f"the broker at {self._kafka.bootstrap} has no transactions ({why}), which --id needs "
            "to count an input once: leave --id out, or use Apache Kafka"
        )

    async def _settle(self, drawn: Input) -> int:
        """Return the first frame that is not in the topic."""
        async with broker.admin(self._kafka) as admin:
            found = await committed(admin, self._id, self._topic, 0)
        if found is not None and found.metadata != drawn.id:
            raise Refused(
                f"--id: reports were sent as {self._name} from a journal other than "
                f"{self._journal.path}: choose another name for this input"
            )
        in_doubt = drawn.begun != drawn.sent
        if found is None:
            if in_doubt and (drawn.sent or now_ms() - drawn.begun_ms > _DOUBT_MS):
                raise Failed(
                    f"--id: the broker no longer knows how much of {self._name} it has: between "
                    f"{self._reports(drawn, drawn.sent)} and {self._reports(drawn, drawn.begun)} "
                    f"of {drawn.reports} reports"
                )
            return drawn.sent
        if found.offset not in (drawn.sent, drawn.begun):
            raise Failed(
                f"{self._journal.path} is an older copy of the journal of {self._name}: expected "
                "the newest"
            )
        if found.offset != drawn.sent:
            self._journal.mark_sent(found.offset)
        return found.offset

    def _reports(self, drawn: Input, frame: int) -> int:
        return self._journal.reports_before(frame, drawn.reports)

    async def _transaction(
        self, producer: AIOKafkaProducer, drawn: Input, start: int, partitions: int
    ) -> int:
        """Send frames from `start` on in one transaction; return the first that is left."""
        taken = self._journal.frames(start)
        until = start + len(taken)
        async with producer.transaction():
            delivery = Delivery(
                producer,
                self._topic,
                partitions,
                precision_ms=self._collection.spec.precision_ms,
            )
            for frame, reports in taken:
                await delivery.add(frame, reports=reports)
            await delivery.finish()
            # Before the commit, so that the journal knows of every commit that may have happened.
            self._journal.begin(until, now_ms=now_ms())
            offset = {TopicPartition(self._topic, 0): OffsetAndMetadata(until, drawn.id)}
            await producer.send_offsets_to_transaction(offset, self._id)
        self._journal.mark_sent(until)
        return until


def _total(drawn: Input) -> str:
    return f"{count(drawn.reports, 'report')} in {count(drawn.frames, 'message')}"
