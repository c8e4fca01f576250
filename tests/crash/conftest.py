"""The brokers of the broker tests.

The broker itself stays up: the embedded one keeps everything in memory.
"""

from tests.broker.conftest import lab, running, start

__all__ = ["lab", "running", "start"]
