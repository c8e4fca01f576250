"""What a ledger gives, refuses and has spent, step by step: the same in every language."""

from fractions import Fraction
from pathlib import Path

import pytest

from ldpstream.mechanisms import CollectionSpec
from ldpstream.mechanisms.ledger import BudgetError, Ledger, LedgerError
from ldpstream.mechanisms.ledger.spread import drawn_windows, shared_out
from tests.exact.wire.test_vectors import SPECS, read, spec_of

VECTOR = read("ledger.json")
SPREAD = read("spread.json")
LABELS = {one["name"]: one["labels"][0] for one in read("devices.json")}


def gives(ledger: Ledger, spec: CollectionSpec, label: object, time_ms: int) -> str:
    try:
        release = ledger.release(spec, label, time_ms=time_ms)
    except BudgetError:
        return "refused"
    except LedgerError:
        return "forgotten"
    return "fresh" if release.fresh else "sent" if release.sent else "again"


def test_every_step(tmp_path: Path):
    specs = {name: spec_of(SPECS[name]) for name, _ in VECTOR["collections"]}
    listed = [(specs[name], window_ms) for name, window_ms in VECTOR["collections"]]
    keys = {"budget": VECTOR["budget"], "horizon_ms": VECTOR["horizon_ms"]}
    with Ledger(tmp_path / "ledger", specs=listed, **keys) as ledger:
        for step in VECTOR["steps"]:
            spec, time_ms = specs[step["collection"]], step["time_ms"]
            if step["do"] == "forget":
                ledger.forget(spec, before_ms=time_ms)
            elif step["do"] == "mark_sent":
                ledger.mark_sent(spec, [time_ms])
            else:
                found = gives(ledger, spec, LABELS[step["collection"]], time_ms)
                assert found == step["gives"], step
            assert str(ledger.spent(time_ms=time_ms).total) == step["spent"], step
        assert str(ledger.spent().total) == VECTOR["spent"]
    given = {step["gives"] for step in VECTOR["steps"] if step["do"] == "release"}
    assert given == {"fresh", "again", "sent", "refused", "forgotten"}


@pytest.mark.parametrize("draw", SPREAD["draws"], ids=lambda one: f"{one['windows']}")
def test_the_windows_that_a_secret_draws(draw: dict):
    numbers = drawn_windows(
        bytes.fromhex(draw["secret"]),
        bytes.fromhex(draw["fingerprint"]),
        draw["start_ms"],
        windows=draw["windows"],
        reports=draw["reports"],
    )
    assert sorted(numbers) == draw["numbers"]


@pytest.mark.parametrize("share", SPREAD["shares"], ids=lambda one: one["budget"])
def test_how_often_collections_take_part(share: dict):
    listed, budget = share["collections"], Fraction(share["budget"])
    windows_ms = {bytes([i]): one["window_ms"] for i, one in enumerate(listed)}
    losses = {bytes([i]): Fraction(one["loss"]) for i, one in enumerate(listed)}
    found = shared_out(
        windows_ms,
        share["horizon_ms"],
        lambda counts: sum(n * losses[one] for one, n in counts.items()) <= budget,
    )
    assert (None if found is None else list(found.values())) == share["reports"]
