"""The demonstration's collection, and questions to its worker.

The collection counts visits in a city by place; the district is disclosed.
"""

from pathlib import Path
from typing import Any, Final, Literal

from ldpstream.agents.client import Client, EstimateRequest
from ldpstream.agents.config import Config, read_config
from ldpstream.agents.demo.city import City
from ldpstream.agents.document import EstimateDocument
from ldpstream.agents.document.answers import WindowState
from ldpstream.mechanisms.base.times import parse_time

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


async def ask_windows(worker: Client, *, last: int) -> dict[int, WindowState]:
    """Return the newest windows that hold counted reports, by their start in epoch ms."""
    windows = await worker.newest(COLLECTION, last)
    return {parse_time(one.window.start): one for one in windows if one.n}


async def ask_estimate(
    worker: Client, window: WindowState, *, top: int | Literal["all"] = TOP
) -> EstimateDocument:
    """Return the document of a window with its `top` places, or all."""
    span = window.window
    return await worker.estimate(
        COLLECTION, EstimateRequest(start=span.start, end=span.end, top=top)
    )


async def ask_newest(worker: Client, *, enough: int) -> EstimateDocument | None:
    """Return the document of the newest window with enough reports, or else of the newest."""
    windows = list((await ask_windows(worker, last=3)).values())
    known = [one for one in windows if one.n >= enough] or windows
    return await ask_estimate(worker, known[-1]) if known else None
