"""`Sender` moves numbers into the domain where it is asked to, as `send --clamp` does."""

from pathlib import Path
from typing import Any

import pytest

import ldpstream as ldp
from ldpstream.agents.device import Sender
from ldpstream.mechanisms.base.errors import ValueOutsideDomainError
from ldpstream.mechanisms.ledger import Ledger
from tests.stream.modes import MODES

HOUR_MS = 3_600_000
AGES = ldp.define_collection(
    "ages",
    mechanism="randomized-response",
    epsilon=60.0,  # a report shows its value
    domain={"interval": [0, 100], "bins": 10},
)


class Kept:
    """A producer that keeps what it is given."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []

    async def send(self, _topic: str, _partition: object, _key: object, frame: bytes, **_: Any):
        self.frames.append(frame)


def reports(frames: list[bytes]) -> list[int]:
    spec = AGES.spec
    found = []
    for frame in frames:
        payload = frame[-spec.report_bytes :]
        found.append(int.from_bytes(payload, "little"))
    return found


async def test_numbers_outside_move_to_the_nearest_end():
    kept = Kept()
    sender = Sender(AGES.spec, "unused:1", producer=kept)
    for age in (150, -1, 42):
        await sender.send([age], clamp=True)
    for age in (100, 0, 42):
        await sender.send([age])
    found = reports(kept.frames)
    assert found[:3] == found[3:]
    assert len(set(found)) == 3
    with pytest.raises(ValueOutsideDomainError):
        await sender.send([150])
    with pytest.raises(ValueOutsideDomainError):
        await sender.send([float("nan")], clamp=True)
    with pytest.raises(ValueError, match="clamp: expected a collection with only numbers"):
        await Sender(MODES.spec, "unused:1", producer=kept).send(["bus"], clamp=True)


async def test_a_ledger_takes_what_was_moved(tmp_path: Path):
    kept = Kept()
    sender = Sender(AGES.spec, "unused:1", producer=kept)
    with Ledger(tmp_path / "ledger", specs=[(AGES.spec, HOUR_MS)], budget=600) as ledger:
        with pytest.raises(ValueOutsideDomainError):
            await sender.send_once(150, ledger=ledger, time_ms=0)
        assert await sender.send_once(150, ledger=ledger, time_ms=0, clamp=True)
    await sender.send([100])
    first, second = reports(kept.frames)
    assert first == second
