"""The timestamp of a Kafka record with reports: when it was produced, cut to the precision.

By default a client writes the millisecond of sending into every record, visible to every reader of
the topic whatever the collection's precision. The event time would not do either: brokers delete
segments by record time and refuse records far ahead of their clock. So the timestamp is the wall
clock's time, cut: never ahead, and behind by at most a day, however coarse the precision, because
retention counts from it.
"""

import time
from typing import Final

_COARSEST_MS: Final = 86_400_000


def record_time_ms(now_ms: int, *, precision_ms: int) -> int:
    """Return the timestamp of a record produced at `now_ms`, both epoch milliseconds.

    >>> record_time_ms(1_795_255_261_234, precision_ms=60_000)
    1795255260000
    """
    step_ms = min(precision_ms, _COARSEST_MS)
    return now_ms - now_ms % step_ms


def now_ms() -> int:
    """Return the wall clock's time, epoch milliseconds."""
    return time.time_ns() // 1_000_000
