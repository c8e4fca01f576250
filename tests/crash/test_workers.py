"""Workers killed with -9, or stopped beyond the session timeout and woken: counts stay exact.

The long forms are runs of `python -m tests.crash.run`.
"""

import pytest

from tests.crash.scenario import run
from tests.lab import Lab

pytestmark = [pytest.mark.broker, pytest.mark.crash]


async def test_one_worker_is_killed(lab: Lab) -> None:
    await run(lab, disturbance="kill", times=2, workers=1, reports=40_000, seed=1)


async def test_one_of_two_workers_is_killed(lab: Lab) -> None:
    await run(lab, disturbance="kill", times=2, workers=2, reports=40_000, seed=2)


async def test_one_of_two_workers_becomes_a_zombie(lab: Lab) -> None:
    await run(lab, disturbance="stop", times=1, workers=2, reports=40_000, seed=3)
