"""The simulation with `one_report`; its long form is `... simulate --one-report`."""

from collections import Counter

import pytest

from tests.soak import CHECK, seeds
from tests.stream.simulation.run import explain, run
from tests.stream.simulation.tokens import TOKEN_MUTANTS, TokenWorld


@pytest.mark.soak
def test_all_invariants_hold_and_runs_reach_every_case():
    outcomes: Counter[str] = Counter()
    for seed in seeds(40, soak=1_000):
        done = run(seed, make=TokenWorld)
        assert done.violated is None, explain(seed, make=TokenWorld)
        outcomes += sum(done.world.checks.outcomes, Counter())
    if not CHECK:
        assert outcomes["counted"] > 150
        assert outcomes["repeated"] > 150
        assert outcomes["crowded"] > 20
        assert outcomes.keys() >= {"late", "partition", "range", "fingerprint", "lost"}


@pytest.mark.parametrize("name", TOKEN_MUTANTS)
def test_a_rule_taken_away_is_noticed(name: str):
    make = TOKEN_MUTANTS[name]
    assert any(run(seed, make=make).violated for seed in range(30))


@pytest.mark.slow
def test_a_schedule_with_tokens_can_be_explained():
    told = explain(49, make=TOKEN_MUTANTS["7 tokens forgotten at a takeover"])
    assert "(7) two reports of one token and window" in told
    assert " token(" in told
