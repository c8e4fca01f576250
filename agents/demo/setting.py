"""The demonstration's collection: visits in a city by place; the district is disclosed."""

from pathlib import Path
from typing import Any, Final

from ldpstream.agents.config import Config, read_config
from ldpstream.agents.demo.city import City

COLLECTION: Final = "visits"
EPSILON: Final = 1.0
PARTITIONS: Final = 4
WINDOW_MS: Final = 5_000
GRACE_MS: Final = 1_000
TOP: Final = 10


def demo_tables(city: City, *, bootstrap: str, port: int) -> dict[str, Any]:
    """Return the configuration as TOML tables; `port` 0 takes any free one."""
    return {
        "kafka": {"bootstrap": bootstrap, "enable_idempotence": False},
        "worker": {"id": "ldpstream-demo", "http": f"127.0.0.1:{port}"},
        "collection": {
            COLLECTION: {
                "mechanism": "block-hadamard",
                "epsilon": EPSILON,
                "domain": {"values": list(city.places), "blocks": city.blocks()},
                "partitions": PARTITIONS,
                "window": {
                    "size": f"{WINDOW_MS}ms",
                    "grace": f"{GRACE_MS}ms",
                    "future": f"{GRACE_MS}ms",
                    "retention": "1d",
                },
                "publish": {"every": "1s", "top": TOP},
            }
        },
    }


def demo_config(city: City, *, bootstrap: str, port: int) -> Config:
    """Return the configuration; environment variables do not override its broker."""
    tables = demo_tables(city, bootstrap=bootstrap, port=port)
    return read_config(tables, base=Path(), environment={})
