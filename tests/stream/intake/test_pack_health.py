"""What a packer serves: metrics, to those who may read a worker's, and its health."""

import asyncio
from pathlib import Path

import pytest
from aiohttp import ClientSession

from ldpstream.agents.config import WorkerConfig, load_config
from ldpstream.agents.config.secret import GivenSecret
from ldpstream.agents.http import HttpUnavailableError
from ldpstream.agents.metrics.packing import PackMetrics
from ldpstream.agents.packing.run import PATIENCE_SECONDS, PackerHealth, serving_health
from tests.ports import free_ports
from tests.stream.cli import configured, invoke, refused

TOKEN = "0123456789abcdef"


@pytest.fixture
def worker(tmp_path: Path) -> WorkerConfig:
    return load_config(configured(tmp_path), environment={}).worker


async def test_metrics_need_the_token_and_probes_do_not(worker: WorkerConfig) -> None:
    address = f"127.0.0.1:{free_ports(1)[0]}"
    guarded, health = worker.model_copy(update={"token": GivenSecret(TOKEN)}), PackerHealth()
    async with (
        serving_health(address, guarded, metrics=PackMetrics(["modes"]), health=health),
        ClientSession(f"http://{address}") as session,
    ):

        async def ask(path: str, token: str = "") -> tuple[int, str]:
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            async with session.get(path, headers=headers) as answer:
                return answer.status, await answer.text()

        assert (await ask("/healthz"))[0] == 200
        status, said = await ask("/metrics")
        assert status == 401
        assert "ldpstream_pack" not in said
        status, said = await ask("/metrics", TOKEN)
        assert status == 200
        assert 'ldpstream_pack_records_total{collection="modes"} 0.0' in said
        assert await ask("/readyz") == (
            503,
            '{"ready": false, "reasons": ["no partitions have been assigned yet"]}',
        )
        health.assigned = True
        assert await ask("/readyz") == (200, '{"ready": true, "reasons": []}')
        health.answered -= PATIENCE_SECONDS
        assert await ask("/readyz") == (
            503,
            '{"ready": false, "reasons": ["the broker does not answer"]}',
        )


async def test_the_page_is_for_this_machine_unless_opened(worker: WorkerConfig) -> None:
    address, metrics = f"0.0.0.0:{free_ports(1)[0]}", PackMetrics(["modes"])
    opened = worker.model_copy(update={"open_to_everybody": True})
    async with serving_health(address, opened, metrics=metrics, health=PackerHealth()):
        pass
    with pytest.raises(HttpUnavailableError, match=r"^worker\.token: expected a token"):
        async with serving_health(address, worker, metrics=metrics, health=PackerHealth()):
            pass


def test_an_address_that_others_reach_needs_a_token(tmp_path: Path) -> None:
    file = configured(tmp_path)
    text = Path(file).read_text()
    Path(file).write_text(text + '\ninput = "frames"\n')
    said = refused(invoke("pack", "-c", file, "--http", "0.0.0.0:6067"), code=1)
    assert said.startswith("worker.token: expected a token, because others can reach 0.0.0.0")


async def test_clients_leave_no_trace_in_the_log(
    worker: WorkerConfig, caplog: pytest.LogCaptureFixture
) -> None:
    port = free_ports(1)[0]
    address = f"127.0.0.1:{port}"
    caplog.set_level("DEBUG")
    metrics = PackMetrics(["modes"])
    async with serving_health(address, worker, metrics=metrics, health=PackerHealth()):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"who are you?\r\n\r\n")
        assert (await reader.read(12)).split()[1] == b"400"
        writer.close()
    said = [record.getMessage() + str(record.exc_info) for record in caplog.records]
    assert not [text for text in said if "127.0.0.1" in text or "who are you" in text]
