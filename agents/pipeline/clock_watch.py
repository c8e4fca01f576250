"""Compare a worker's clock with the broker's, and leave the group while it is wrong."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from aiokafka.errors import KafkaError

from ldpstream.agents.kafka.producing import LastingProducer
from ldpstream.agents.pipeline.engine import Engine
from ldpstream.agents.pipeline.services import Group
from ldpstream.agents.served.clock import WorkerClock
from ldpstream.agents.state.records import HEAD, Key, encode_key, state_prefix

STEP_SECONDS: Final = 0.25
_ASK_SECONDS: Final = 10.0
_ASK_SOON_SECONDS: Final = 1.0


@dataclass(frozen=True)
class ClockWatch:
    """Watches the clock by which these engines decide; there is at least one."""

    clock: WorkerClock
    engines: Sequence[Engine]
    group: Group
    producer: LastingProducer

    async def ask(self) -> None:
        """Have the broker timestamp a record: the deletion of a key that no owner ever writes.

        Raises:
            KafkaError: if the broker does not answer, or refuses.
        """
        engine = self.engines[0]
        key = encode_key(state_prefix(engine.context), Key(HEAD, 0, 0))
        await self.producer.send_records(engine.config.topics.changelog, 0, [(key, None)])

    async def run(self) -> None:
        """Leave the group while the clock is wrong, and rejoin afterwards, until cancelled."""
        away = False
        while True:
            wrong = self.clock.wrong
            if wrong and not away:
                await asyncio.gather(*(engine.put_down() for engine in self.engines))
                away = await self.group.leave()
            elif away and not wrong:
                away = not await self.group.come_back()
            await asyncio.sleep(STEP_SECONDS)
            self.clock.now_ms()
            if self.clock.due(_ASK_SOON_SECONDS if wrong or self.clock.stepped else _ASK_SECONDS):
                with suppress(KafkaError):
                    await self.ask()
