"""Worlds in which functions of the product are replaced."""

from collections.abc import Mapping
from contextlib import ExitStack
from types import MappingProxyType
from typing import Any
from unittest.mock import patch

from tests.stream.simulation.world import World


class PatchedWorld(World):
    """A world with functions of the product replaced, by what they are called where."""

    changes: Mapping[str, Any] = MappingProxyType({})

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
