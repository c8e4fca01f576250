"""Several thousand devices in a process, each with a ledger of its own on disk.

    python -m benchmarks.fleet_devices FLEET.json FIRST END

The process is driven by numbers of windows on standard input: it lets each of its devices report
in one, and says so with a line of JSON. It may be killed at any moment, and started again for the
same window: what a device has written and not sent is then sent, and nothing is drawn twice. The
line `end` makes it tell what the ledgers have spent, and the tokens of all windows, in a file.
"""

import asyncio
import json
import sys
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, Self

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
AT_ONCE: Final = 250
"""Devices that report at the same time: all have written their ledgers before any has sent."""
_OLD: Final = np.array([0.3, 0.2, 0.15, 0.1, 0.1, 0.08, 0.05, 0.02])
_NEW: Final = _OLD[::-1]
_NEWCOMERS: Final = 0.3
_COME_AT: Final = 0.4
_CHANGING: Final = 0.5


@dataclass(frozen=True)
class Fleet:
    """All devices: what they are like follows from the seed, as every process knows it."""

    file: str
    ledgers: str
    devices: int
    windows: int
    start_ms: int
    seed: int

    @classmethod
    def read(cls, path: Path) -> Self:
        """Return the fleet that `write` has written."""
        return cls(**json.loads(path.read_text()))

    def write(self, path: Path) -> None:
        """Write it for the processes of devices."""
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
        """Return which devices are there, `(devices,)`: newcomers from some window on."""
        return ~self._newcomers | (window >= _COME_AT * self.windows)

    def population(self, window: int) -> Floats:
        """Return the shares that the devices of a window are drawn from, `(k,)`."""
        if window < _COME_AT * self.windows:
            return _OLD
        return (1.0 - _NEWCOMERS) * _OLD + _NEWCOMERS * _NEW

    def values(self, window: int) -> Integers:
        """Return the value of each device, `(devices,)`: of half of them another in each window."""
        changing = np.random.default_rng([self.seed, 2]).random(self.devices) < _CHANGING
        stable, own = (
            np.random.default_rng([self.seed, 3, number]).random(self.devices)
            for number in (0, window + 1)
        )
        tosses = np.where(changing, own, stable)
        of = [np.searchsorted(np.cumsum(p)[:-1], tosses, side="right") for p in (_OLD, _NEW)]
        return np.where(self._newcomers, of[1], of[0])


class Devices:
    """The devices `first..end - 1`, whose ledgers are opened when they are first asked."""

    def __init__(self, fleet: Fleet, sender: Sender, first: int, end: int) -> None:
        self._fleet, self._sender = fleet, sender
        self._numbers = range(first, end)
        self._open: dict[int, Ledger] = {}
        self._spec = fleet.collection.spec

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

    async def report(self, window: int, *, after_kill: bool) -> dict[str, int]:
        """Let all report that are active and take part; return how many do.

        After a kill also how many of these had written a report, and how many of them had not
        marked it as sent.
        """
        time_ms = self._fleet.window_start_ms(window)
        active, values = self._fleet.active(window), self._fleet.values(window)
        taking = [
            number
            for number in self._numbers
            if active[number] and self._ledger(number).takes_part(self._spec, time_ms=time_ms)
        ]
        found = {"part": len(taking), "written": 0, "interrupted": 0}
        if after_kill:
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

    def end(self, path: Path) -> None:
        """Write what each device has spent in each period, and its tokens, `(devices, windows)`."""
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
        np.savez(path, tokens=tokens, spent=np.array(spent))


async def serve(path: Path, first: int, end: int) -> None:
    """Do what standard input says, until it ends."""
    fleet = Fleet.read(path)
    loop = asyncio.get_running_loop()
    async with Sender.from_config(fleet.file, NAME) as sender:
        devices = Devices(fleet, sender, first, end)
        while line := (await loop.run_in_executor(None, sys.stdin.readline)).split():
            if line[0] == "end":
                devices.end(Path(line[1]))
                found: dict[str, int] = {}
            else:
                found = await devices.report(int(line[0]), after_kill=line[1:] == ["again"])
            print(json.dumps(found), flush=True)


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
