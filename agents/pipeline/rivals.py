"""Detect workers with the same id but different windows: each counts only part of the reports.

Size and hop are in the state's key, so such workers split one source between two states.
"""

import logging
from collections.abc import Iterable
from typing import Final

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.state.replica import Replica
from ldpstream.mechanisms.base.times import format_duration

RECENT_SECONDS: Final = 120.0
"""How long another state counts as active after its last record."""

log = logging.getLogger(__name__)


class Rivals:
    """Detects active states of the same spec with other windows in a changelog."""

    def __init__(self, config: CollectionConfig) -> None:
        self._config = config
        self._seen: dict[tuple[int, int, int], int] = {}
        self._moved: dict[tuple[int, int], float] = {}
        self.problem = ""
        """The problem, as text; empty if there is none."""

    def look(self, replicas: Iterable[Replica], seconds: float) -> None:
        """Look at the replicas; `seconds` is the monotonic clock."""
        for replica in replicas:
            for windows, seq in replica.rivals.items():
                if self._seen.get((replica.partition, *windows)) != seq:
                    self._seen[replica.partition, *windows] = seq
                    if windows not in self._moved:
                        log.error("collection %s: %s", self._config.name, self._describe(windows))
                    self._moved[windows] = seconds
        recent = [w for w, moved in self._moved.items() if seconds - moved < RECENT_SECONDS]
        self.problem = self._describe(recent[0]) if recent else ""

    def _describe(self, windows: tuple[int, int]) -> str:
        return (
            f"another worker with this id has {differences(self._config, windows)}: each counts "
            "only part of the reports; give all workers the same windows"
        )


def differences(config: CollectionConfig, windows: tuple[int, int]) -> str:
    """Describe how size and hop (ms) differ from the configured ones; empty if they do not."""
    own = config.window.size_ms, config.window.hop_ms
    return " and ".join(
        f"window.{name} = {format_duration(theirs)}, here {format_duration(ours)}"
        for name, theirs, ours in zip(("size", "hop"), windows, own, strict=True)
        if theirs != ours
    )
