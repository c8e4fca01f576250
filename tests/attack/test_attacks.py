"""Attacks in their short form, on this checkout: those that neither take a minute nor time answers.

`python -m tests.attack` runs all of them, on an earlier commit too.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attack.attacks import all_attacks
from tests.attack.stand import Attack, Stand
from tests.brokers import Broker, broker, skip_without_kafka

HERE = Path(__file__).resolve().parents[2]
TAKEN = (
    *("control-brackets", "control-unreadable-changelog"),
    *("minimum-by-subtraction", "minimum-by-provisionals", "minimum-of-a-block"),
    *("bomb-header-name", "bomb-unwarned", "http-other-sites", "ledger-without-lock", "umask-077"),
    "slip-",
    "spread-",
)

pytestmark = [pytest.mark.broker, pytest.mark.slow]


@pytest.fixture(scope="module")
def kafka() -> Iterator[Broker]:
    skip_without_kafka()
    with broker("kafka") as running:
        yield running


@pytest.mark.parametrize(
    "attack",
    [attack for attack in all_attacks() if attack.name.startswith(TAKEN)],
    ids=lambda attack: attack.name,
)
async def test_an_attack_does_not_succeed(attack: Attack, kafka: Broker, tmp_path: Path) -> None:
    stand = Stand(checkout=HERE, broker=kafka, folder=tmp_path, short=True, forked=True)
    outcome = await attack.run(stand)
    assert outcome.held, outcome.figure
