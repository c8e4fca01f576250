"""What devices lose over time, in words."""

import json
import time
from math import exp
from pathlib import Path

from ldpstream.agents.config.privacy.over_time import spent_sentences
from ldpstream.mechanisms.ledger import Ledger
from tests.exact.ledgers import DAY_MS, HOUR_MS, spec
from tests.stream.cli import invoke


def test_a_ledger_states_the_loss_of_the_past_year_and_against_whom(tmp_path: Path):
    modes, rides, now = spec(), spec("rides", 0.25), time.time_ns() // 1_000_000
    listed = [(modes, HOUR_MS), (rides, DAY_MS)]
    with Ledger(tmp_path / "ledger", specs=listed, budget=2) as ledger:
        for days in (0, 1, 2, 400):
            ledger.release(modes, "bus", time_ms=now - days * DAY_MS)
        ledger.release(rides, "bus", time_ms=now)
    found = json.loads(invoke("ledger", str(tmp_path / "ledger")).stdout)
    assert (found["exact"], found["year"]["exact"]) == ("13/20", "11/20")
    spent, against = found["said"]
    assert "given 4 reports: 3 to modes (0.3), 1 to rides (0.25)" in spent
    assert "lose at most 0.55 together: all of them are at most 1.74 times likelier" in spent
    assert exp(0.55) < 1.74
    assert "operators of broker, gateway and workers" in against
    assert "bus" not in spent + against


def test_a_ledger_without_reports_says_so(tmp_path: Path):
    with Ledger(tmp_path / "ledger", specs=[(spec(), HOUR_MS)], budget=1) as ledger:
        (said,) = spent_sentences(ledger.spent(), "the past year")
    assert said == "In the past year this device has reported nothing."
