"""The demonstration's collection: visits by place, of which a report discloses the district."""

from pathlib import Path
from typing import Any, Final

from ldpstream.agents.config import Config, read_config

COLLECTION: Final = "visits"
EPSILON: Final = 1.0
PARTITIONS: Final = 4
WINDOW_MS: Final = 5_000
_DISTRICTS: Final = (
    "old-town", "harbour", "university", "hill", "station", "riverside", "gardens", "mills",
    "northgate", "market", "orchard", "docks",
)  # fmt: skip
_PLACES: Final = (
    "square", "bakery", "school", "park", "library", "clinic", "gym", "cinema", "cafe", "bank",
    "hotel", "museum", "pool", "theatre", "court", "depot", "studio", "workshop", "bridge", "tower",
)  # fmt: skip
# Blocks of 5 to 20 places, since the size of a block decides how well its places are hidden.
BLOCKS: Final = tuple(
    tuple(f"{district}/{place}" for place in _PLACES[: 5 + 5 * number % 16])
    for number, district in enumerate(_DISTRICTS)
)
PLACES: Final = tuple(place for block in BLOCKS for place in block)


def demo_tables(*, bootstrap: str, port: int) -> dict[str, Any]:
    """Return the configuration as TOML tables; `port` 0 takes any free one."""
    return {
        "kafka": {"bootstrap": bootstrap, "enable_idempotence": False},
        "worker": {"id": "ldpstream-demo", "http": f"127.0.0.1:{port}"},
        "collection": {
            COLLECTION: {
                "mechanism": "block-hadamard",
                "epsilon": EPSILON,
                "domain": {"values": list(PLACES), "blocks": [list(block) for block in BLOCKS]},
                "partitions": PARTITIONS,
                "window": {
                    "size": f"{WINDOW_MS}ms",
                    "grace": "1s",
                    "future": "1s",
                    "retention": "1d",
                },
                "publish": {"every": "1s", "top": 10},
            }
        },
    }


def demo_config(*, bootstrap: str, port: int) -> Config:
    """Return the configuration; environment variables do not override its broker."""
    return read_config(demo_tables(bootstrap=bootstrap, port=port), base=Path(), environment={})
