"""Asking a running worker by the commands that users have, and its changelog."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

from tests.lab import Lab
from tests.processes import PATIENCE_SECONDS, Worker
from tests.stream.cli import invoke


def command(*words: str | Path) -> str:
    """Run a command that succeeds, and return what it printed."""
    result = invoke(*map(str, words))
    assert result.exit_code == 0, result.output
    return result.stdout


def final(url: str, name: str, *options: str) -> dict[str, Any]:
    """Wait for the final document of a collection's only window, and return it."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        windows = json.loads(command("query", url, name, "--all", "--json", *options))["windows"]
        if windows and windows[0]["final"]:
            (document,) = windows
            return dict(document)
        time.sleep(0.3)
    raise AssertionError(f"no final window of {name}")


def counted(worker: Worker) -> int:
    """Return how many reports of trips a worker has counted."""
    return int(worker.get("/api/collections/trips/status")["counted"])


async def until_counted(lab: Lab, n: int) -> None:
    """Wait until the changelog holds exactly n reports."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while sum(head.n for head in await lab.heads()) != n:  # noqa: ASYNC110 (no event)
            await asyncio.sleep(0.3)
