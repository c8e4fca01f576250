"""A Quix Streams app: tumbling counts by message key, one for every report.

    PYTHON benchmarks/engine/quix_counts.py BOOTSTRAP TOPIC MESSAGES FOLDER

Runs in an environment of its own, without ldpstream: Quix Streams needs an older pydantic. Prints
`{"cpu_seconds": ..., "seconds": ...}`, measured from the first report on, once it has counted all
reports of this many messages. State is kept in RocksDB and in a changelog topic, the defaults.
"""

import json
import os
import sys
import time
import warnings
from datetime import timedelta

warnings.simplefilter("ignore")

from quixstreams import Application  # noqa: E402 (its imports warn)

_HEAD_BYTES = 24


def main() -> None:
    bootstrap, name, messages, folder = sys.argv[1:]
    seen, begun, cpu = 0, 0.0, 0.0

    def first(value: bytes) -> bytes:
        nonlocal begun, cpu
        if not begun:
            begun, cpu = time.perf_counter(), time.process_time()
        return value

    def processed(_topic: str, _partition: int, _offset: int) -> None:
        nonlocal seen
        seen += 1
        if seen == int(messages):
            took = {
                "cpu_seconds": time.process_time() - cpu,
                "seconds": time.perf_counter() - begun,
            }
            print(json.dumps(took), flush=True)
            os._exit(0)

    app = Application(
        broker_address=bootstrap,
        consumer_group=f"quix-{name}",
        auto_offset_reset="earliest",
        state_dir=folder,
        on_message_processed=processed,
        loglevel="ERROR",
    )
    topic = app.topic(name, value_deserializer="bytes", key_deserializer="bytes")
    frame = app.dataframe(topic).apply(first)
    frame = frame.apply(lambda value: list(value[_HEAD_BYTES:]), expand=True)
    frame.tumbling_window(timedelta(seconds=10), grace_ms=timedelta(days=1)).count().current()
    app.run()


if __name__ == "__main__":
    main()
