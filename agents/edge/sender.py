"""One device, or a process that acts for many: values in, acknowledged frames out."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from ldpstream.agents.broker import clients
from ldpstream.agents.broker.producer import LastingProducer
from ldpstream.agents.broker.record_time import now_ms, record_time_ms
from ldpstream.agents.broker.rounds import read_rounds
from ldpstream.agents.config import ConfigError, load_config
from ldpstream.mechanisms.domains.fitting import move_inside
from ldpstream.mechanisms.interface.mechanism import Reports
from ldpstream.mechanisms.ledger import Ledger, SkippedError
from ldpstream.mechanisms.wire.one_report import Tokens
from ldpstream.mechanisms.wire.rounds import words_of
from ldpstream.mechanisms.wire.spec import CollectionSpec

_PATIENCE_MS: Final = 120_000


class Sender:
    """Privatizes and produces to a collection's topic; an asynchronous context manager.

    `options` are the keys of `[kafka]` except `bootstrap` (docs/how-to/kafka-auth.md). By default
    frames are compressed, acknowledged by all replicas, and retried by an idempotent producer for
    up to two minutes. A given `producer` belongs to another sender, which starts and stops it. A
    record has neither key nor headers, and its timestamp is cut to the precision.
    """

    def __init__(
        self,
        spec: CollectionSpec,
        bootstrap: str,
        *,
        options: Mapping[str, Any] | None = None,
        producer: LastingProducer | None = None,
    ) -> None:
        self.spec = spec
        self._bootstrap = bootstrap
        self._options = options or {}
        chosen = {"request_timeout_ms": _PATIENCE_MS, **self._options}
        self._owner = producer is None
        self._producer = producer or LastingProducer(bootstrap, chosen)

    def sharing(self, spec: CollectionSpec) -> "Sender":
        """Return the sender of another collection over the same connection.

        It needs no `async with` of its own, and works as long as this one is open.
        """
        return Sender(spec, self._bootstrap, options=self._options, producer=self._producer)

    async def round(self) -> "Sender | None":
        """Return the sender of the newest round of unknown words; None where none has begun.

        Its labels are words. The collection is the same, so open its ledger with `self.spec`.

        Raises:
            SpecError: for a collection whose domain is not words.
            KafkaError: where the broker does not answer, or `ldpstream discover` has not run.
        """
        words_of(self.spec)
        reader = clients.reader(self._bootstrap, self._options, committed_only=False)
        try:
            await reader.start()
            rounds = await read_rounds(reader, f"{self.spec.topic}.rounds", self.spec)
        finally:
            await reader.stop()
        return self.sharing(rounds[max(rounds)]) if rounds else None

    @classmethod
    def from_config(cls, path: str | Path, name: str) -> Self:
        """Return the sender of a collection of a configuration file, with its `[kafka]`.

        Raises:
            ConfigError: naming the key and what was expected; also for an unknown collection.
            SpecError: for an impossible collection.
        """
        config = load_config(path)
        if name not in config.collections:
            names = ", ".join(config.collections)
            problem = f"expected one of the collections {names}"
            raise ConfigError(f"collection.{name}", problem, file=str(path))
        spec = config.collections[name].spec
        return cls(spec, config.kafka.bootstrap, options=config.kafka.options)

    async def __aenter__(self) -> Self:
        """Connect.

        Raises:
            ClientOptionError: for an option that the Kafka clients do not know.
            NoIdempotenceError: where the broker has no idempotent producers, like the embedded one;
                set `enable_idempotence = false` for such a broker.
            KafkaError: where no broker answers.
        """
        if self._owner:
            await self._producer.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._owner:
            await self._producer.stop()

    async def send(
        self,
        labels: Sequence[Any] | NDArray[Any],
        *,
        times_ms: Sequence[int] | NDArray[np.int64] | None = None,
        secret: bytes | None = None,
        clamp: bool = False,
    ) -> None:
        """Randomise n >= 1 labels, and return when the broker has their frame.

        `times_ms` are epoch milliseconds, one for each label, by default now. Where the collection
        has `one_report`, give one label, and the device's `secret`. `clamp` moves numbers outside
        the domain to its nearest end, as `ldpstream send --clamp` does.

        Raises:
            ValueError: for `clamp`, if values are not numbers alone.
            ValueOutsideDomainError: naming the position of the first bad label, never the label.
            KafkaError: where the frame may not have arrived. Another call draws again; to avoid
                that keep the frame (`spec.frame`, then `produce`), or use a ledger.
        """
        if clamp:
            labels = move_inside(self.spec.domain, labels)
        await self.produce(self.spec.frame(labels, times_ms=times_ms, secret=secret))

    async def send_reports(
        self, reports: Reports, *, times_ms: NDArray[np.int64], tokens: Tokens | None = None
    ) -> None:
        """Frame n >= 1 reports drawn earlier, and return when the broker has them.

        Where the collection has `one_report`, give the devices' `tokens`, uint8 `(n, 8)`; each of
        their partitions gets a frame.

        Raises:
            KafkaError: where they may not have arrived; the same reports may be sent again.
        """
        if self.spec.one_report is None or tokens is None:
            frames = [self.spec.frame_reports(reports, times_ms=times_ms, tokens=tokens)]
        else:
            frames = [
                self.spec.frame_reports(reports[at], times_ms=times_ms[at], tokens=tokens[at])
                for at in self.spec.one_report.by_partition(tokens)
            ]
        sent = await asyncio.gather(*map(self.produce, frames), return_exceptions=True)
        for error in filter(None, sent):
            raise error

    async def send_once(
        self, label: Any, *, ledger: Ledger, time_ms: int | None = None, clamp: bool = False
    ) -> bool:
        """Send the ledger's report for the window of a time, by default now.

        Return False, and send nothing, if it has arrived before, or if the ledger spreads its
        budget over other windows. After an error or a crash the next call sends the same bytes.
        `clamp` is as in `send`.

        Raises:
            BudgetError: where the rest of the period's budget is too small.
            KafkaError: where it may not have arrived.
        """
        asked_ms = now_ms() if time_ms is None else time_ms
        if clamp:
            (label,) = move_inside(self.spec.domain, [label])
        try:
            release = ledger.release(self.spec, label, time_ms=asked_ms)
        except SkippedError:
            return False
        if release.sent:
            return False
        secret = None if self.spec.one_report is None else ledger.secret
        frame = self.spec.frame_encoded(release.payload, time_ms=release.time_ms, secret=secret)
        await self.produce(frame)
        ledger.mark_sent(self.spec, [release.start_ms])
        return True

    async def produce(self, frame: bytes) -> None:
        """Produce a frame, and return when the broker has it.

        It goes to any partition, or, where the collection has `one_report`, to its tokens' one.

        Raises:
            KafkaError: where it may not have arrived.
        """
        rule = self.spec.one_report
        partition = None if rule is None else rule.frame_partition(frame)
        timestamp_ms = record_time_ms(now_ms(), precision_ms=self.spec.precision_ms)
        await self._producer.send(
            self.spec.topic, partition, None, frame, timestamp_ms=timestamp_ms
        )
