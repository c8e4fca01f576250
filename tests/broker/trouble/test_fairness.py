"""A collection with a huge backlog does not keep another one of the same worker waiting."""

from pathlib import Path

import pytest

from tests.broker.conftest import on_kafka
from tests.brokers import Broker
from tests.fairness import decided, fill, trickle
from tests.fuzz.stream import copied_reasons
from tests.lab import Lab
from tests.processes import eventually

pytestmark = [
    pytest.mark.broker,
    on_kafka,
]
JUNK = 150_000


async def test_windows_are_final_while_another_collection_is_flooded(
    running: Broker, tmp_path: Path
) -> None:
    lab = Lab(running, tmp_path, names=("flooded", "trips"), partitions=2)
    await fill(lab, "flooded", JUNK, reports=0)
    with lab.worker() as worker:
        seen = await trickle(lab, worker, slow="trips", fast="flooded", backlog=JUNK, windows=2)
        assert seen.behind >= 1
        await eventually(lambda: decided(worker, "flooded") == JUNK)
        assert worker.terminate() == 0
        assert worker.errors() == ""
    # Every one of them was copied, under its one reason.
    assert list((await copied_reasons(lab)).values()) == [{"undecodable"}] * JUNK
