"""A plain Faust app: one agent and one table, an increment for every report.

    python -m benchmarks.engine.faust_table BOOTSTRAP TOPIC PARTITIONS MESSAGES FOLDER

Prints `{"cpu_seconds": ..., "seconds": ...}`, measured from the first report on, once it has
counted all reports of this many messages, and ends.
"""

import asyncio
import json
import os
import sys
import time

import faust
from faust.types import StreamT

_HEAD_BYTES = 24


def main() -> None:
    bootstrap, topic, partitions, messages, folder = sys.argv[1:]
    asyncio.run(_agent(bootstrap, topic, int(partitions), int(messages), folder))


async def _agent(bootstrap: str, topic: str, partitions: int, messages: int, folder: str) -> None:
    app = faust.App(
        f"plain-{topic}",
        broker=f"kafka://{bootstrap}",
        store="memory://",
        datadir=folder,
        web_enabled=False,
        topic_partitions=partitions,
        consumer_auto_offset_reset="earliest",
        broker_session_timeout=6,
        broker_heartbeat_interval=1,
        topic_disable_leader=True,
    )
    table = app.Table("counts", default=int, partitions=partitions)
    source = app.topic(
        topic, key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw"
    )

    async def count(stream: StreamT[bytes]) -> None:
        seen, begun, cpu = 0, 0.0, 0.0
        async for value in stream:
            if not seen:
                begun, cpu = time.perf_counter(), time.process_time()
            for report in value[_HEAD_BYTES:]:
                table[report] += 1
            seen += 1
            if seen == messages:
                took = time.process_time() - cpu, time.perf_counter() - begun
                print(json.dumps(dict(zip(("cpu_seconds", "seconds"), took, strict=True))))
                sys.stdout.flush()
                os._exit(0)

    app.agent(source, name="plain")(count)
    await app.start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    main()
