"""`ldpstream gateway` where it cannot run, or no longer: one message, and what to look at."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ldpstream.agents.config import read_config
from ldpstream.agents.edge import gateway_process as run
from tests.gateway.serving import TABLES
from tests.ports import free_ports
from tests.stream.cli import PLACES, configured, invoke, refused, spawn

FREE = '[gateway]\nhttp = "127.0.0.1:0"\n'


def test_without_a_broker_it_says_so_and_fails(tmp_path: Path):
    nobody = f"127.0.0.1:{free_ports(1)[0]}"
    file = configured(tmp_path, f'[kafka]\nbootstrap = "{nobody}"\n' + FREE + PLACES)
    result = spawn("gateway", "-c", file)
    assert (result.returncode, result.stdout) == (1, b"")
    assert result.stderr.startswith(f"no broker answers at {nobody}: ".encode())
    assert result.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('token = "short"', "gateway.token: expected at least 16 visible ASCII characters"),
        ('token = { env = "NO_SUCH" }', "gateway.token: expected the environment variable NO_SUC"),
        ('certificate = "a.pem"\nkey = "b.pem"', "gateway.certificate: cannot read "),
        ('linger = "2m"', "gateway.linger: expected at most 1m"),
        ("[kafka]\ncolour = 3", "kafka.colour: unknown key; expected one of bootstrap, "),
    ],
)
def test_impossible_settings_are_wrong_input(tmp_path: Path, table: str, message: str):
    file = configured(tmp_path, f"[gateway]\n{table}\n" + PLACES)
    assert refused(invoke("gateway", "-c", file)).startswith(f"{file}: {message}")


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
