"""`ldpstream discover`: find unknown words, round by round, through a worker and its broker."""

import asyncio
from typing import Final

import click

from ldpstream.agents.broker.clients import replication_factor
from ldpstream.agents.broker.metadata import count_brokers
from ldpstream.agents.broker.record_time import now_ms
from ldpstream.agents.broker.rounds import publish_round, read_rounds
from ldpstream.agents.broker.topics import declare_topics
from ldpstream.agents.cli.terminal import broker
from ldpstream.agents.cli.terminal.client import connect
from ldpstream.agents.cli.terminal.common import count, load_collection
from ldpstream.agents.cli.terminal.errors import Failed, Refused
from ldpstream.agents.cli.terminal.options import Form
from ldpstream.agents.cli.terminal.tables import Showing, print_document
from ldpstream.agents.client import (
    BoxRequest,
    Client,
    EstimateRequest,
    UnavailableError,
    UnreachableError,
)
from ldpstream.agents.config import CollectionConfig, Config
from ldpstream.agents.document.entries import ValueEstimate
from ldpstream.agents.document.model import EstimateDocument
from ldpstream.estimators.discovery import confirmed, first_round, looked_at, next_round
from ldpstream.mechanisms.base.times import format_time
from ldpstream.mechanisms.domains.words import Round, Words, bits_word
from ldpstream.mechanisms.wire.rounds import in_round, round_document, words_of
from ldpstream.mechanisms.wire.spec import CollectionSpec

_AGAIN_SECONDS: Final = 1.0
_WAITS: Final = (UnavailableError, UnreachableError)


def discover_words(
    config_file: str,
    name: str,
    *,
    url: str | None,
    start: int | None,
    form: Form,
) -> None:
    """Run the rounds of a collection of unknown words, and print the words."""
    config, collection = load_collection(config_file, name)
    if collection.spec.words is None:
        raise Refused(f"collection.{name}.domain: expected words, {{ words = {{ bits = 32 }} }}")
    run = _Run(config, collection, url or f"http://{config.worker.http}")
    document = broker.run(run.words(start), config.kafka, config_file)
    print_document(document, form, Showing(minimum=collection.minimum, together=True))


class _Run:
    """One run. Its only memory is the topic of rounds, so it can be resumed."""

    def __init__(self, config: Config, collection: CollectionConfig, url: str) -> None:
        self._kafka = config.kafka
        self._collection = collection
        self._spec = collection.spec
        self._topic = str(collection.topics.rounds)
        self._url = url

    async def words(self, start_ms: int | None) -> EstimateDocument:
        """Return the last round's document, with the words found as its values."""
        async with broker.admin(self._kafka) as admin:
            factor = replication_factor(self._kafka.options, brokers=count_brokers(admin))
            await declare_topics(
                admin, [self._collection], replication_factor=factor, only=[self._topic]
            )
        async with broker.reader(self._kafka) as reader:
            published = await read_rounds(reader, self._topic, self._spec)
        window_ms = self._collection.window.pane_ms
        run_ms = words_of(self._spec).rounds * window_ms
        if start_ms is None:
            start_ms = max(published, default=now_ms())
        first_ms = start_ms - start_ms % run_ms
        round_specs = [
            spec for at, spec in sorted(published.items()) if first_ms <= at < first_ms + run_ms
        ]
        current = (
            round_specs[-1]
            if round_specs
            else await self._publish(first_round(first_ms, window_ms))
        )
        async with connect(self._url) as worker:
            while True:
                words = words_of(current)
                question = words.round
                assert question is not None
                self._print_round(words, question)
                if question.number == words.rounds - 1:
                    return await self._list_words(worker, words, question)
                request = EstimateRequest(top=looked_at(words), ranges=[], quantiles=[], linear=[])
                document = await self._final(worker, question, request)
                shares = {
                    int(str(entry.value)): entry.share or 0.0 for entry in document.distribution
                }
                current = await self._publish(next_round(words, shares))

    async def _publish(self, question: Round) -> CollectionSpec:
        async with broker.producer(self._kafka) as producer:
            await publish_round(producer, self._topic, self._spec, question)
        return in_round(self._spec, round_document(self._spec, question))

    def _print_round(self, words: Words, question: Round) -> None:
        number, span = question.number + 1, f"{format_time(question.start_ms)} to"
        what = "words" if question.number == words.rounds - 1 else "prefixes"
        bits = f"{words.lengths[question.number]} bits"
        click.echo(
            f"round {number} of {words.rounds}, {span} {format_time(question.end_ms)}: {what} of "
            f"{bits} from {count(len(question.prefixes), 'prefix')}",
            err=True,
        )

    async def _final(
        self, worker: Client, question: Round, request: EstimateRequest
    ) -> EstimateDocument:
        """Return the document of a round's window once it is final, however long that takes."""
        span = {"start": format_time(question.start_ms), "end": format_time(question.end_ms)}
        while True:
            try:
                document = await worker.estimate(
                    self._spec.name, request.model_copy(update=span), fingerprint=None
                )
            except _WAITS as error:
                click.echo(f"waiting: {error}", err=True)
            else:
                if document.final and (document.withheld or not document.n):
                    raise Failed(
                        f"{self._spec.name}: round {question.number + 1} has "
                        f"{count(document.n, 'report')}, fewer than minimum = "
                        f"{self._collection.minimum:,}: start another run with --start"
                    )
                if document.final:
                    return document
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _list_words(self, worker: Client, words: Words, question: Round) -> EstimateDocument:
        numbers = [*range(len(question.prefixes)), words.other]
        boxes = [BoxRequest(name=str(number), bounds=[[number, number]]) for number in numbers]
        request = EstimateRequest(
            top=0, ranges=list(boxes), quantiles=[], linear=[], simultaneous=True
        )
        document = await self._final(worker, question, request)
        *prefixes, other = document.ranges
        lows = [-1.0 if entry.low is None else entry.low for entry in document.ranges]
        listed = [
            ValueEstimate(
                value=bits_word(question.prefixes[at]), **prefixes[at].model_dump(exclude={"name"})
            )
            for at in confirmed(words, lows)
        ]
        listed.sort(key=lambda entry: -(entry.share or 0.0))
        rest = other.model_copy(update={"name": "other words"})
        return document.model_copy(update={"distribution": listed, "ranges": [rest]})
