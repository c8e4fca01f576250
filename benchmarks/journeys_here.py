"""Count the code to follow in the checkout that it is run in, as JSON (`benchmarks.journeys`).

It uses only names that every checkout has, so that the same file counts an earlier commit.
"""

import ast
import asyncio
import json
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any, cast

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from tests.stream.asking import three_collections
from tests.stream.device_frames import collection
from tests.stream.serving import MINUTE_MS, START_MS

from ldpstream.agents.device import Sender
from ldpstream.agents.web import build_http
from ldpstream.mechanisms.ledger import Ledger

ROOT = Path.cwd()
ROOMS = ("mechanisms", "estimators", "agents")


class Calls:
    """Calls of functions of these rooms, in whichever thread, while `counting`."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self._counting = False
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        name = frame.f_code.co_qualname
        # A generator is called once an item, which says nothing about what there is to read.
        if event == "call" and self._counting and not name.endswith(">"):
            parts = Path(frame.f_code.co_filename).parts
            for room in ROOMS:
                if room in parts and "site-packages" not in parts and "tests" not in parts:
                    place = "/".join(parts[parts.index(room) :])
                    self.found.append(f"{place} {name}")

    @contextmanager
    def counting(self) -> Iterator[list[str]]:
        """Count in the block; the list is complete at its end."""
        self.found, self._counting = [], True
        yield self.found
        self._counting = False


class Taking:
    """A producer whose broker has everything at once."""

    async def send(self, *_: object, **__: object) -> None: ...


async def once(calls: Calls, told: dict[str, list[str]]) -> None:
    """Send a report that a ledger gives, without a broker."""
    spec, hour_ms, producer = collection(), 60 * MINUTE_MS, Taking()
    sender = Sender(spec, "nowhere:1", producer=cast("Any", producer))
    with (
        tempfile.TemporaryDirectory(prefix="ldpstream-journeys-") as folder,
        Ledger(Path(folder) / "ledger", specs=[(spec, hour_ms)], budget=99) as ledger,
    ):
        for hour in (2, 3):
            time_ms = START_MS + hour * hour_ms
            with calls.counting() as told["a report once"]:
                assert await sender.send_once(hour, ledger=ledger, time_ms=time_ms)


async def journeys() -> dict[str, list[str]]:
    """Return the calls of each journey, which has been taken once before to fill caches."""
    # The same reports in each run: some of their bounds take a few calls more than others.
    os.urandom = Random(1).randbytes
    calls, told = Calls(), dict[str, list[str]]()
    pipeline = three_collections()
    city = pipeline.collections["city"]
    spec, label = city.config.spec, [(1, 2)]
    for minute in (2, 3):
        time_ms = START_MS + minute * MINUTE_MS
        with calls.counting() as told["a value to bytes"]:
            spec.frame(label, times_ms=[time_ms])
        # Enough for a document that is not withheld, in every checkout.
        frame = spec.frame(20 * label, times_ms=20 * [time_ms])
        with calls.counting() as told["a frame to a final"]:
            city.deliver(0, frame, now_ms=time_ms)
            city.close(time_ms + MINUTE_MS)
    await once(calls, told)
    path = "/api/collections/city/estimate?start={}&end={}&range={}"
    app: web.Application = build_http(cast("Any", pipeline))
    async with TestClient(TestServer(app)) as client:
        for box in ("1..2,2..4", "1..3,2..4"):
            asked = path.format("2026-11-21T10:00:00Z", "2026-11-21T10:01:00Z", box)
            with calls.counting() as told["a range over HTTP"]:
                answer = await client.get(asked)
                assert answer.status == 200, await answer.text()
    sys.setprofile(None)
    threading.setprofile(None)
    return told


def longest_chain(files: dict[str, Path]) -> int:
    """Return the number of modules in the longest chain of imports; `files` by module name."""
    uses: dict[str, set[str]] = {}
    for name, file in files.items():
        found: set[str] = set()
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ldpstream."):
                base = (node.module or "").removeprefix("ldpstream.")
                found |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
        uses[name] = {one for one in found & files.keys() if one != name}
    depths: dict[str, int] = {}

    def depth(name: str, above: frozenset[str]) -> int:
        if name in above:
            return 0
        if name not in depths:
            # In order: in a circle, the depth depends on where it is entered.
            below = (depth(one, above | {name}) for one in sorted(uses[name]))
            depths[name] = 1 + max(below, default=0)
        return depths[name]

    return max(depth(name, frozenset()) for name in sorted(files))


def main() -> None:
    files = {
        ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file
        for room in ROOMS
        for file in (ROOT / room).rglob("*.py")
    }
    figures = {"files": len(files), "lines": 0, "longest chain of imports": longest_chain(files)}
    figures["lines"] = sum(len(file.read_text().splitlines()) for file in files.values())
    print(json.dumps({"figures": figures, "journeys": asyncio.run(journeys())}))


if __name__ == "__main__":
    main()
