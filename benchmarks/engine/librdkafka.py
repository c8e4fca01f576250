"""A bare consumer of librdkafka that drops what it reads: the limit of the protocol.

    PYTHON benchmarks/engine/librdkafka.py BOOTSTRAP TOPIC PARTITIONS MESSAGES

Runs in the environment of Quix Streams, which brings `confluent_kafka`. Prints
`{"cpu_seconds": ..., "seconds": ...}`, measured from the first message on; its own threads, which
fetch and decompress, are in the processor time.
"""

import json
import sys
import time

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

_BATCH = 20_000
_PATIENCE_SECONDS = 60.0


def main() -> None:
    bootstrap, topic, partitions, messages = sys.argv[1:]
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"librdkafka-{topic}",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    consumer.assign(
        [TopicPartition(topic, place, OFFSET_BEGINNING) for place in range(int(partitions))]
    )
    seen, begun, cpu = 0, 0.0, 0.0
    while seen < int(messages):
        read = consumer.consume(_BATCH if seen else 1, _PATIENCE_SECONDS if not seen else 0.1)
        if not seen:
            begun, cpu = time.perf_counter(), time.process_time()
        seen += sum(message.error() is None for message in read)
    took = {"cpu_seconds": time.process_time() - cpu, "seconds": time.perf_counter() - begun}
    print(json.dumps(took), flush=True)
    consumer.close()


if __name__ == "__main__":
    main()
