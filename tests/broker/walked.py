"""Which functions of ours a report runs through on its way to a final, and a range over HTTP.

`python -m tests.broker.walked CONFIG COLLECTION` runs a worker, sends a report, asks for a range
once its window is final, and prints `{"heading": ["file function", ...]}`: all calls of all threads
in their order, by the heading of the journey in `docs/internals/architecture.md`.
"""

import asyncio
import json
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import aiohttp

from ldpstream.agents.cli.terminal.broker import close_panes
from ldpstream.agents.client import connect
from ldpstream.agents.config import load_config
from ldpstream.agents.device import Sender
from ldpstream.agents.worker import work
from tests.lab import START_MS
from tests.ledger import WINDOW_MS

_ROOT = Path(__file__).resolve().parents[2]
_ROOMS = tuple(f"{_ROOT / name}/" for name in ("agents", "estimators", "mechanisms"))
_STEP_SECONDS = 0.1
_PATIENCE_SECONDS = 60.0


class _Calls:
    """The calls of our functions since the last `pop`, each as `file function`."""

    def __init__(self) -> None:
        self._calls: list[str] = []
        self._files: dict[str, str] = {}

    def record(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call":
            return
        code = frame.f_code
        file = self._files.get(code.co_filename)
        if file is None:
            path = str(Path(code.co_filename).resolve())
            file = path.removeprefix(f"{_ROOT}/") if path.startswith(_ROOMS) else ""
            self._files[code.co_filename] = file
        if file:
            self._calls.append(f"{file} {code.co_qualname}")

    def pop(self) -> list[str]:
        calls, self._calls = self._calls, []
        return calls


async def walk(file: str, name: str) -> dict[str, list[str]]:
    """Return the calls of both journeys."""
    config, stop, calls = load_config(file, environment={}), asyncio.Event(), _Calls()
    collection, kafka = config.collections[name], config.kafka
    url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    threading.setprofile(calls.record)
    working = asyncio.create_task(work(config, stop, announce=url.set_result))
    address = await url
    sys.setprofile(calls.record)
    async with Sender(collection.spec, kafka.bootstrap, options=kafka.options) as sender:
        calls.pop()
        await sender.send([3], times_ms=[START_MS])
    await close_panes(kafka, collection, START_MS + WINDOW_MS)
    async with connect(address) as worker:
        while not any(w.published for w in await worker.newest(name, 1)):  # noqa: ASYNC110 (a worker)
            await asyncio.sleep(_STEP_SECONDS)
    report = calls.pop()
    path = f"{address}/api/collections/{name}/estimate?range=3..7"
    async with aiohttp.ClientSession() as session, session.get(path) as response:
        assert response.status == 200, await response.text()
    answer = calls.pop()
    sys.setprofile(None)
    stop.set()
    await working
    return {"A report to a final": report, "A range over HTTP": answer}


async def _main() -> None:
    async with asyncio.timeout(_PATIENCE_SECONDS):
        print(json.dumps(await walk(*sys.argv[1:])))


if __name__ == "__main__":
    asyncio.run(_main())
