"""Worlds with a rule changed: another worker, another partition, or patched product functions."""

from collections.abc import Mapping
from contextlib import ExitStack
from types import MappingProxyType
from typing import Any
from unittest.mock import patch

from tests.stream.simulation.worker import Watched, Worker
from tests.stream.simulation.world import World


def with_worker(worker: type[Worker], world: type[World] = World) -> type[World]:
    return type(worker.__name__, (world,), {"worker_class": worker})


def with_partition(
    partition: type[Watched], world: type[World] = World, *, worker: type[Worker] = Worker
) -> type[World]:
    owner = type(partition.__name__, (worker,), {"partition_class": partition})
    return with_worker(owner, world)


class PatchedWorld(World):
    """A world with functions of the product replaced."""

    changes: Mapping[str, Any] = MappingProxyType({})
    """The replacements, by the path that the product looks each function up at."""

    def step(self, number: int) -> None:
        with self.patched():
            super().step(number)

    def quiesce(self) -> None:
        with self.patched():
            super().quiesce()

    @classmethod
    def with_change(cls, name: str, change: object, *places: str) -> type[World]:
        return type(name, (cls,), {"changes": dict.fromkeys(places, change)})

    def patched(self) -> ExitStack:
        stack = ExitStack()
        for where, change in self.changes.items():
            stack.enter_context(patch(where, change))
        return stack
