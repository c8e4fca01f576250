"""Every rule of the state taken away is noticed; `python -m tests.stream.mutants` finds seeds."""

import pytest

from tests.stream.mutants import MUTANTS
from tests.stream.simulation.curious import CuriousWorld
from tests.stream.simulation.run import explain, run, shrink
from tests.stream.simulations.test_simulation import ran

EARLY = MUTANTS["6 early commit"].make


@pytest.mark.parametrize("name", MUTANTS)
def test_a_rule_taken_away_is_noticed(name: str):
    make, whole, seed = MUTANTS[name]
    # The first seeds of these worlds are among those that `test_simulation` runs.
    if not issubclass(whole, CuriousWorld):
        assert ran(seed, make=whole).violated is None
    assert run(seed, make=make).violated is not None


def test_a_schedule_is_shortened_to_one_that_still_fails():
    schedule = shrink(0, make=EARLY)
    assert len(schedule) < 5
    assert (run(0, schedule, make=EARLY).violated or "").startswith("(6)")
    assert "shortest schedule" in explain(0, make=EARLY)


def test_a_schedule_at_which_the_code_fails_is_not_a_violation():
    class Stopping(EARLY):
        def quiesce(self) -> None:
            if not self.trace:
                raise KeyError
            super().quiesce()

    assert len(shrink(0, make=Stopping)) > 0


@pytest.mark.slow
def test_a_schedule_with_tokens_can_be_explained():
    told = explain(49, make=MUTANTS["7 tokens forgotten at a takeover"].make)
    assert "(7) two reports of one token and window" in told
    assert " token(" in told
