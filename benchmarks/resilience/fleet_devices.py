"""Several thousand devices in a process, each with a ledger of its own on disk.

    python -m benchmarks.resilience.fleet_devices FLEET.json FIRST END

The process reads numbers of windows from standard input: it lets each of its devices report in that
window, and answers with a line of JSON. It may be killed at any moment, and started again for the
same window: a report that a device has written but not sent is then sent, and nothing is drawn
twice. With the word `die` it kills itself, by SIGKILL, as soon as the broker has acknowledged a
report, so before the ledger has marked it. On the line `end` it writes what the ledgers have spent,
and the tokens of all windows, to a file.

Ledgers are synced one by one, and a disk takes milliseconds for each: devices are spread over
threads, so that many wait for it at the same time.
"""

import asyncio
import json
import os
import signal
import sys
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from ldpstream.agents.config import CollectionConfig, load_config
from ldpstream.agents.device import Sender
from ldpstream.mechanisms.ledger import Ledger
from ldpstream.mechanisms.wire.one_report import token_numbers

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]

NAME: Final = "fleet"
SIZE: Final = 8
AT_ONCE: Final = 64
"""Devices of a thread that report at the same time: all have written their ledgers before any has
sent."""
THREADS: Final = 16
_OLD: Final = np.array([0.3, 0.2, 0.15, 0.1, 0.1, 0.08, 0.05, 0.02])
_NEW: Final = _OLD[::-1]
_NEWCOMERS: Final = 0.3
_COME_AT: Final = 0.4
_CHANGING: Final = 0.5


@dataclass(frozen=True)
class Fleet:
    """All devices: their values follow from the seed, so that every process knows them."""

    file: str
    ledgers: str
    devices: int
    windows: int
    start_ms: int
    seed: int

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a fleet that `write` wrote."""
        return cls(**json.loads(path.read_text()))

    def write(self, path: Path) -> None:
        """Write the fleet for the processes of devices."""
        path.write_text(json.dumps(asdict(self)))

    @cached_property
    def collection(self) -> CollectionConfig:
        """The collection that they report to."""
        return load_config(self.file, environment={}).collections[NAME]

    def window_start_ms(self, window: int) -> int:
        """Return when a window starts."""
        return self.start_ms + window * self.collection.window.size_ms

    @cached_property
    def _newcomers(self) -> Booleans:
        return np.random.default_rng([self.seed, 1]).random(self.devices) < _NEWCOMERS

    def active(self, window: int) -> Booleans:
        """Return which devices are active, `(devices,)`: newcomers from some window on."""
        return ~self._newcomers | (window >= _COME_AT * self.windows)

    def population(self, window: int) -> Floats:
        """Return the shares that the devices of a window are drawn from, `(k,)`."""
        if window < _COME_AT * self.windows:
            return _OLD
        return (1.0 - _NEWCOMERS) * _OLD + _NEWCOMERS * _NEW

    def values(self, window: int) -> Integers:
        """Return the value of each device, `(devices,)`: half of them change in each window."""
        changing = np.random.default_rng([self.seed, 2]).random(self.devices) < _CHANGING
        stable, own = (
            np.random.default_rng([self.seed, 3, number]).random(self.devices)
            for number in (0, window + 1)
        )
        tosses = np.where(changing, own, stable)
        of = [np.searchsorted(np.cumsum(p)[:-1], tosses, side="right") for p in (_OLD, _NEW)]
        return np.where(self._newcomers, of[1], of[0])


class MortalSender(Sender):
    """Kills the process, if told to, between an acknowledgement and the ledger's mark."""

    dies = False

    async def produce(self, frame: bytes) -> None:
        """Produce a frame and wait for its acknowledgement."""
        await super().produce(frame)
        if self.dies:
            os.kill(os.getpid(), signal.SIGKILL)


class Devices:
    """The devices `first..end - 1` in a thread, whose ledgers are opened when first asked."""

    def __init__(self, fleet: Fleet, first: int, end: int) -> None:
        self._fleet = fleet
        self._sender = MortalSender.from_config(fleet.file, NAME)
        self._numbers = range(first, end)
        self._open: dict[int, Ledger] = {}
        self._spec = fleet.collection.spec
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self.do(self._sender.__aenter__()).result()

    def do(self, what: Coroutine[Any, Any, Any]) -> Future[Any]:
        """Run a call in the thread, to which the ledgers belong."""
        return asyncio.run_coroutine_threadsafe(what, self._loop)

    def _ledger(self, number: int) -> Ledger:
        if number not in self._open:
            collection, spread = self._fleet.collection, self._fleet.collection.spread
            assert spread is not None
            self._open[number] = Ledger(
                Path(self._fleet.ledgers, f"{number}.ledger"),
                specs=[(collection.spec, collection.window.size_ms)],
                budget=spread.budget(collection.spec),
                horizon_ms=spread.horizon_ms,
                spread=True,
            )
        return self._open[number]

    async def report(
        self, time_ms: int, active: Booleans, values: Integers, *, word: str
    ) -> dict[str, int]:
        """Let all active devices that take part report; return how many do.

        After a kill (`again`) also return how many of these had written a report, and how many of
        those had not marked it as sent. With `die` the call does not return.
        """
        self._sender.dies = word == "die"
        taking = [
            number
            for number in self._numbers
            if active[number] and self._ledger(number).takes_part(self._spec, time_ms=time_ms)
        ]
        found = {"part": len(taking), "written": 0, "interrupted": 0}
        if word == "again":
            found["written"] = sum(self._written(number, time_ms) for number in taking)
            found["interrupted"] = sum(self._interrupted(number, time_ms) for number in taking)
        for start in range(0, len(taking), AT_ONCE):
            sending = (
                self._sender.send_once(
                    int(values[number]), ledger=self._ledger(number), time_ms=time_ms
                )
                for number in taking[start : start + AT_ONCE]
            )
            await asyncio.gather(*sending)
        return found

    def _written(self, number: int, time_ms: int) -> bool:
        spent = self._ledger(number).spent(time_ms=time_ms)
        return any(one.start_ms == time_ms for one in spent.windows)

    def _interrupted(self, number: int, time_ms: int) -> bool:
        if not self._written(number, time_ms):
            return False
        kept = self._ledger(number).release_index(self._spec, 0, time_ms=time_ms)
        return not kept.sent

    async def end(self) -> tuple[NDArray[np.uint64], list[list[float]]]:
        """Return the tokens, `(devices, windows)`, and what each has spent in each period."""
        fleet, rule, spread = self._fleet, self._spec.one_report, self._fleet.collection.spread
        assert rule is not None
        assert spread is not None
        starts = [fleet.window_start_ms(window) for window in range(fleet.windows)]
        times_ms = np.array(starts, dtype=np.int64)
        periods = times_ms[:: spread.windows].tolist()
        tokens = np.empty((len(self._numbers), fleet.windows), dtype=np.uint64)
        spent = []
        for place, number in enumerate(self._numbers):
            ledger = self._ledger(number)
            found = rule.tokens(ledger.secret, self._spec.fingerprint, times_ms)
            tokens[place] = token_numbers(found)
            spent.append([float(ledger.spent(time_ms=period).total) for period in periods])
            ledger.close()
        return tokens, spent


def serve(path: Path, first: int, end: int) -> None:
    """Follow the lines of standard input until it ends."""
    fleet = Fleet.read(path)
    edges = np.linspace(first, end, min(THREADS, end - first) + 1).astype(int).tolist()
    parts = [Devices(fleet, *ends) for ends in pairwise(edges)]
    for line in sys.stdin:
        asked, word = [*line.split(), ""][:2]
        if asked == "end":
            ends = [one.result() for one in [part.do(part.end()) for part in parts]]
            tokens, spent = (np.concatenate(column) for column in zip(*ends, strict=True))
            np.savez(Path(word), tokens=tokens, spent=spent)
            found = {}
        else:
            window = int(asked)
            told = fleet.window_start_ms(window), fleet.active(window), fleet.values(window)
            running = [part.do(part.report(*told, word=word)) for part in parts]
            each = [one.result() for one in running]
            found = {name: sum(one[name] for one in each) for name in each[0]}
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
