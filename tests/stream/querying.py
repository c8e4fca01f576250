"""A pipeline of some minutes for the commands that ask a worker, and what they print."""

import asyncio
import json
from typing import Any

from click.testing import Result

from tests.stream.cli import invoke
from tests.stream.serving import (
    AGES,
    CITY,
    MINUTE_MS,
    RIDES,
    START_MS,
    Pipeline,
    foreign_frame,
    serve_collections,
    visits,
)


def five_minutes() -> Pipeline:
    """`city` has five windows and a foreign message, `ages` one; `rides` is empty."""
    made = serve_collections({"city": CITY, "rides": RIDES, "ages": AGES})
    city = made.collections["city"]
    for minute in range(5):
        times = [START_MS + minute * MINUTE_MS] * 100
        city.report(0, visits(minute, 100), times_ms=times)
    city.deliver(0, foreign_frame())
    made.collections["ages"].report(0, [12.0] * 500, times_ms=[START_MS] * 500)
    return made


async def ldpstream(*arguments: str) -> Result:
    """Run a command in a thread, while this event loop serves."""
    return await asyncio.to_thread(invoke, *arguments)


async def windows(*arguments: str) -> list[dict[str, Any]]:
    """Return the documents that `query --json` prints."""
    result = await ldpstream("query", *arguments, "--json")
    assert result.exit_code == 0, result.stderr
    parsed = json.loads(result.stdout)
    assert list(parsed) == ["windows"]
    documents: list[dict[str, Any]] = parsed["windows"]
    return documents
