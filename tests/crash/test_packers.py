"""Packers and workers killed with -9, or stopped beyond the session timeout and woken.

The long forms are runs of `python -m tests.crash.run --input frames`.
"""

from pathlib import Path

import pytest

from tests.broker.conftest import on_kafka
from tests.brokers import Broker
from tests.crash.scenario import run
from tests.lab import Lab

pytestmark = [
    pytest.mark.broker,
    pytest.mark.crash,
    # The embedded broker is left to the long form: nothing here depends on the broker.
    on_kafka,
]


@pytest.fixture
def lab(running: Broker, tmp_path: Path) -> Lab:
    return Lab(running, tmp_path, partitions=2, extra='input = "frames"')


async def packed(lab: Lab) -> bool:
    """Whether any counts came from packed messages.

    Where a packer is slow to come back, the worker reads the source itself.
    """
    return any(head.frames > 0 for head in await lab.heads())


async def test_packers_and_a_worker_are_killed(lab: Lab) -> None:
    settings = {"workers": 1, "packers": 2, "reports": 3_000, "a_frame": 1}
    await run(lab, disturbance="kill", times=2, seed=2, **settings)
    assert await packed(lab)


async def test_one_of_two_packers_becomes_a_zombie(lab: Lab) -> None:
    settings = {"workers": 0, "packers": 2, "reports": 3_000, "a_frame": 1}
    with lab.worker():
        await run(lab, disturbance="stop", times=1, seed=3, **settings)
    assert await packed(lab)
