"""A bare consumer of librdkafka that drops what it reads: the limit of the protocol.

    PYTHON benchmarks/engine/librdkafka.py BOOTSTRAP TOPIC PARTITIONS MESSAGES

Runs in the environment of Quix Streams, which brings `confluent_kafka`. Prints
`{"cpu_seconds": ..., "seconds": ...}`, from the assignment of partitions on: its own threads, which
fetch ahead and decompress, are in the processor time.
"""

import json
import sys
import time

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

_BATCH = 20_000


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
    seen, begun, cpu = 0, time.perf_counter(), time.process_time()
    consumer.assign(
        [TopicPartition(topic, place, OFFSET_BEGINNING) for place in range(int(partitions))]
    )
    while seen < int(messages):
        seen += sum(message.error() is None for message in consumer.consume(_BATCH, 0.1))
    took = {"cpu_seconds": time.process_time() - cpu, "seconds": time.perf_counter() - begun}
    print(json.dumps(took), flush=True)
    consumer.close()


if __name__ == "__main__":
    main()
