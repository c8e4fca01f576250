"""The collections of the day, and how long a final may take."""

from dataclasses import dataclass
from typing import Final

GRACE_SECONDS: Final = 4
IDLE_SECONDS: Final = 6
SLACK_SECONDS: Final = 15
"""What a final may take beyond its window's end, grace and idle time."""
LIVE: Final = f'grace = "{GRACE_SECONDS}s", future = "4s", idle = "{IDLE_SECONDS}s"'
HOLDING: Final = 'grace = "2h", future = "4s", idle = "off"'
"""Windows during a move to another cluster, as docs/how-to/back-up-and-restore.md says."""
WAITING: Final = LIVE.replace(f'idle = "{IDLE_SECONDS}s"', 'idle = "off"')
"""Windows that wait for every partition."""
SIZE: Final = 'size = "10s"'
"""Of all windows, before that of `people` is changed."""

_COMMON: Final = f"""partitions = 3
precision = "1ms"
window = {{ {SIZE}, {LIVE} }}
publish = {{ every = "1s" }}
"""
VALUES: Final = '["bus", "train", "walk"]'
COLLECTIONS: Final = {
    "trips": f"""mechanism = "randomized-response"
epsilon = 2.0
domain = {{ values = {VALUES} }}
minimum = 1
{_COMMON}""",
    "people": f"""mechanism = "block-hadamard"
epsilon = 2.0
minimum = 20
domain = {{ attributes = {{ age = {{ size = 4 }}, smokes = {{ values = ["yes", "no"] }} }} }}
{_COMMON}""",
    "places": f"""mechanism = "block-hadamard"
epsilon = 1.0
domain = {{ size = 12, blocks = 4 }}
minimum = 60
minimum_block = 5
{_COMMON}""",
}
"""`trips` gets a value, `people` is `sampled` and gets another size, `places` gets partitions."""


@dataclass(frozen=True)
class Span:
    """A time, on the clock of `time.time`, for some collections: by default for all."""

    begin: float
    end: float
    names: frozenset[str] = frozenset(COLLECTIONS)

    def holds(self, at: float, name: str) -> bool:
        return self.begin <= at <= self.end and name in self.names
