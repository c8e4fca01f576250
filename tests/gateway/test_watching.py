"""A gateway whose watch of its topics fails unexpectedly."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ldpstream.agents.config import read_config
from ldpstream.agents.edge import gateway_process as run
from tests.gateway.serving import TABLES


async def test_a_gateway_that_can_no_longer_watch_its_topics_ends(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Otherwise it would seem ready, by what it last knew."""

    async def watch() -> None:
        raise ZeroDivisionError("in a client")

    async def drain() -> None: ...

    async def opened(*_: object) -> tuple[Any, Any]:
        topics = SimpleNamespace(problems=[], watch=watch)
        return topics, SimpleNamespace(drain=drain)

    monkeypatch.setattr(run, "_open", opened)
    own = {"worker": {"data": str(tmp_path)}, "gateway": {"http": "127.0.0.1:0"}}
    config = read_config({**TABLES, **own}, base=tmp_path, environment={})
    said: list[str] = []
    serving = run.serve_gateway(config, asyncio.Event(), announce=said.append)
    with pytest.raises(ZeroDivisionError, match="in a client"):
        async with asyncio.timeout(30):
            await serving
    assert len(said) == 1
