"""Attacks in their short form, but for those that are slow or time answers.

`python -m tests.attack` runs all of them.
"""

from pathlib import Path

import pytest

from tests.attack.attacks import all_attacks
from tests.attack.stand import Attack, Stand
from tests.broker.conftest import on_kafka
from tests.brokers import Broker

TAKEN = (
    *("control-brackets", "control-unreadable-changelog"),
    *("minimum-by-subtraction", "minimum-by-provisionals", "minimum-of-a"),
    *("bomb-header-name", "bomb-unwarned", "http-other-sites", "ledger-without-lock"),
    "words-",
)

pytestmark = [pytest.mark.broker, pytest.mark.slow]


@on_kafka
@pytest.mark.parametrize(
    "attack",
    [attack for attack in all_attacks() if attack.name.startswith(TAKEN)],
    ids=lambda attack: attack.name,
)
async def test_an_attack_does_not_succeed(attack: Attack, running: Broker, tmp_path: Path) -> None:
    stand = Stand(broker=running, folder=tmp_path)
    outcome = await attack.run(stand)
    assert outcome.held, outcome.figure
