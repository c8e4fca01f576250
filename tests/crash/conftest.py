"""Every crash test runs on the embedded broker and on Apache Kafka.

The broker itself stays up: the embedded one keeps everything in memory.
"""

from tests.broker.conftest import lab, running

__all__ = ["lab", "running"]
