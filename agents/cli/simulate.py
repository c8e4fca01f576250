"""`ldpstream simulate`: send made-up reports to a collection, to try a set-up."""

import asyncio
import signal
import time
from typing import Final

import click
import numpy as np
from numpy.typing import NDArray

from ldpstream.agents.cli.send import LARGEST_BATCH
from ldpstream.agents.config import CollectionConfig, Config
from ldpstream.agents.demo.crowd import Crowd, CrowdOfRecords
from ldpstream.agents.device import Sender
from ldpstream.agents.terminal import broker
from ldpstream.agents.terminal.common import (
    config_option,
    count,
    load_collection,
    number_option,
    refuse_words,
)
from ldpstream.agents.terminal.numbers import Real, Whole
from ldpstream.mechanisms.domains.attributes import Attributes
from ldpstream.mechanisms.exact.entropy import SystemEntropy
from ldpstream.mechanisms.wire.one_report import TOKEN_BYTES

_TICK_SECONDS: Final = 0.1


@click.command()
@config_option
@number_option("--rate", 1, 1_000_000, default=1_000, text="Reports per second.")
@number_option("--batch", 1, LARGEST_BATCH, default=100, text="Most reports per message.")
@click.option(
    "--seconds",
    type=Real(min=0, min_open=True),
    metavar="N",
    help="End after this many seconds; otherwise run until Ctrl-C or SIGTERM.",
)
@click.option("--seed", type=Whole(0), default=1, show_default=True, metavar="N")
@click.argument("name")
def simulate(
    config_file: str, name: str, *, rate: int, batch: int, seconds: float | None, seed: int
) -> None:
    """Send privatized reports of made-up values to a collection, at a steady rate.

    The seed determines the values: a crowd that wanders over the domain within ten minutes. They
    are randomised with the operating system's entropy, as on real devices. Do not use it on a
    collection that real devices report to: nobody can separate the two afterwards.
    """
    config, collection = load_collection(config_file, name)
    refuse_words(collection)
    domain = collection.spec.domain
    crowd = (
        CrowdOfRecords(domain, seed=seed)
        if isinstance(domain, Attributes)
        else Crowd(domain.shape, seed=seed)
    )
    run = _run(config, collection, crowd, rate=rate, batch=batch, seconds=seconds)
    sent = broker.run(run, config.kafka, config_file)
    click.echo(f"{count(sent, 'report')} acknowledged")


async def _run(
    config: Config,
    collection: CollectionConfig,
    crowd: Crowd | CrowdOfRecords,
    *,
    rate: int,
    batch: int,
    seconds: float | None,
) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await broker.source_partitions(config.kafka, collection)
    async with Sender(
        collection.spec, config.kafka.bootstrap, options=config.kafka.options
    ) as sender:
        begun = last = time.monotonic()
        due, sent = 0.0, 0
        while not stop.is_set() and (seconds is None or last - begun < seconds):
            await asyncio.sleep(_TICK_SECONDS)
            now = time.monotonic()
            # After a pause of the broker or the machine, do not catch up with a burst.
            due += rate * min(now - last, 5 * _TICK_SECONDS)
            last = now
            values = crowd.draw(int(due), seconds=time.time())
            due -= len(values)
            await _send(sender, values, batch)
            sent += len(values)
    return sent


async def _send(sender: Sender, values: NDArray[np.int64], batch: int) -> None:
    """Send values as messages of at most `batch` reports, and wait until the broker has them."""
    spec = sender.spec
    reports = spec.mechanism.privatize(values)
    # Each value comes from a different device, so each gets a new token.
    words = SystemEntropy().words(len(values))
    tokens = None if spec.one_report is None else words.view(np.uint8).reshape(-1, TOKEN_BYTES)
    times_ms = np.full(len(values), time.time_ns() // 1_000_000, dtype=np.int64)
    parts = [slice(start, start + batch) for start in range(0, len(values), batch)]
    await asyncio.gather(
        *(
            sender.send_reports(
                reports[part],
                times_ms=times_ms[part],
                tokens=None if tokens is None else tokens[part],
            )
            for part in parts
        )
    )
