"""A user's own Faust app with an agent, a table and a web page, and the pipeline attached to it.

python -m tests.broker.own_app CONFIG ORDERS_TOPIC DATA_FOLDER worker --web-port PORT

With UNKNOWN_TOPIC set, the broker has not heard of that topic for the first three seconds.
"""

import asyncio
import os
import sys
import time
from typing import Any

import faust
import prometheus_client
from aiokafka.cluster import ClusterMetadata
from faust.web import Request, Response, View

from ldpstream.agents.config import WorkerConfig, load_config
from ldpstream.agents.engine.metrics import Metrics
from ldpstream.agents.web import serve
from ldpstream.agents.worker import attach

unknown = os.environ.get("UNKNOWN_TOPIC")
config = load_config(sys.argv.pop(1), environment={})
orders = sys.argv.pop(1)
app = faust.App(
    f"own-{orders}",
    broker=f"kafka://{config.kafka.bootstrap}",
    store="memory://",
    datadir=sys.argv.pop(1),
    topic_partitions=2,
    broker_session_timeout=6,
    broker_heartbeat_interval=1,
    consumer_auto_offset_reset="earliest",
    # Faust alone asks again about topics of the app's own only after this.
    consumer_metadata_max_age_ms=300_000 if unknown else 5_000,
)
counts = app.Table("counts", default=int)


@app.agent(app.topic(orders, value_type=str, partitions=2, internal=True))
async def count(stream: faust.Stream[str]) -> None:
    async for order in stream:
        if order == "spoilt":
            raise ValueError(order)
        counts[order] += 1


@app.page("/orders/")
async def show(view: View, request: Request) -> Response:
    return view.json(dict(counts.items()))


pipeline = attach(app, config, metrics=Metrics(registry=prometheus_client.CollectorRegistry()))


def hide(topic: str, *, until: float) -> None:
    """Make clients see what a broker says of a topic that it does not know yet."""
    update = ClusterMetadata.update_metadata

    def update_without(self: ClusterMetadata, metadata: Any) -> None:
        if time.monotonic() < until:
            metadata.topics = [
                (3, name, False, []) if name == topic else (code, name, *others)
                for code, name, *others in metadata.topics
            ]
        update(self, metadata)

    ClusterMetadata.update_metadata = update_without


@app.task
async def answer() -> None:
    async with serve(pipeline, WorkerConfig(http="127.0.0.1:0")) as url:
        # Faust's worker turns what is printed into log messages.
        print(f"ready {url}", flush=True, file=sys.__stdout__)
        await asyncio.Event().wait()


if __name__ == "__main__":
    if unknown:
        hide(unknown, until=time.monotonic() + 3)
    app.main()
