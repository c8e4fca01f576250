"""`ldpstream simulate`: send made-up reports to a collection, to try a set-up."""

import asyncio
import signal

import click
import numpy as np
from numpy.typing import NDArray

from ldpstream.agents.cli.demonstration.devices import Crowd, CrowdOfRecords, report_crowd
from ldpstream.agents.cli.terminal import broker
from ldpstream.agents.cli.terminal.common import (
    count,
    load_collection,
    refuse_words,
)
from ldpstream.agents.config import CollectionConfig, Config
from ldpstream.agents.device import Sender
from ldpstream.mechanisms.domains.attributes import Attributes


def simulate_devices(
    config_file: str, name: str, *, rate: int, batch: int, seconds: float | None, seed: int
) -> None:
    """Send reports of made-up values until the time is up."""
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
    if seconds is not None:
        loop.call_later(seconds, stop.set)
    sent = 0

    def acknowledged(values: NDArray[np.int64], _time_ms: int) -> None:
        nonlocal sent
        sent += len(values)

    async with Sender(
        collection.spec, config.kafka.bootstrap, options=config.kafka.options
    ) as sender:
        await report_crowd(sender, crowd, stop, rate=rate, batch=batch, acknowledged=acknowledged)
    return sent
