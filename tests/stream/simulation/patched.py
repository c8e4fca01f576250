"""Worlds with a rule changed: another worker, another partition, or patched product functions."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar
from unittest.mock import patch

from ldpstream.agents.state.replica import Replica
from tests.stream.simulation.worker import Watched, Worker
from tests.stream.simulation.world import World

T = TypeVar("T")


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

    def patched(self) -> ExitStack:
        stack = ExitStack()
        for where, change in self.changes.items():
            stack.enter_context(patch(where, change))
        return stack


class Mutant(NamedTuple):
    """A world without a rule, that with all rules, and the first seed that shows a difference."""

    make: type[World]
    whole: type[World]
    seed: int


MUTANTS: dict[str, Mutant] = {}


def mutant(
    name: str,
    seed: int,
    whole: type[World] = World,
    *places: str,
    worker: type[Worker] = Worker,
    part: str = "",
) -> Callable[[T], T]:
    """Register a class or function that takes a rule away, as part of a `whole` world.

    Workers, partitions and replicas take the place of that world's own (an attribute `part` of a
    worker that of the worker's own), anything else that of the product's at these `places`.
    """

    def register(rule: T) -> T:
        MUTANTS[name] = Mutant(_without(rule), whole, seed)
        return rule

    def _without(rule: Any) -> type[World]:
        if places:
            return type(rule.__name__, (whole,), {"changes": dict.fromkeys(places, rule)})
        if part or issubclass(rule, Watched):
            rule = type(rule.__name__, (worker,), {part or "partition_class": rule})
        if issubclass(rule, Worker):
            return type(rule.__name__, (whole,), {"worker_class": rule})
        if issubclass(rule, Replica):
            # The full evaluation would notice before the invariants do.
            return type(rule.__name__, (whole,), {"replica_class": rule, "shadow": False})
        return rule

    return register
