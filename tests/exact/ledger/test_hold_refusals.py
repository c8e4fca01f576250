"""`hold` in a spec: what it is part of, and what cannot be held."""

import pytest

from ldpstream.mechanisms import SpecError
from tests.exact.held import THREE, held
from tests.exact.wire.test_vectors import spec_of


def test_the_fingerprint_says_what_is_held():
    plain = spec_of(
        {"toml": '[collection.modes]\nmechanism = "randomized-response"\nepsilon = 1.0\n' + THREE}
    )
    seen = {
        plain.fingerprint,
        held(hold="4").fingerprint,
        held(hold="5").fingerprint,
        held().fingerprint,
    }
    assert len(seen) == 4
    assert held(hold="{ windows = 4 }").fingerprint == held(hold="4").fingerprint
    assert held() == held() != held(hold="4")
    assert b'"version":3' in held().canonical
    assert "epoch of 4 windows" in " ".join(held().disclosed())


@pytest.mark.parametrize(
    ("hold", "said"),
    [
        (
            "1",
            "collection.modes.hold: expected a whole number of windows from 2 to 1,000,000, got 1",
        ),
        ("true", "got true"),
        ("{ epsilon = 2.0 }", "hold.windows: expected a whole number"),
        ("{ windows = 4, often = 1 }", "hold.often: expected one of the keys windows, epsilon"),
        ("{ windows = 4, epsilon = 1.0 }", "hold.epsilon: expected more than epsilon"),
        ("{ windows = 4, epsilon = inf }", "hold.epsilon: expected a finite number"),
    ],
)
def test_what_cannot_be_held_is_refused(hold: str, said: str):
    with pytest.raises(SpecError, match=said.replace("(", r"\(")):
        held(hold=hold)


@pytest.mark.parametrize("mechanism", ["subset-selection", "l1-bits", "l1-geometric", "tree"])
def test_mechanisms_without_a_chain_say_what_to_write(mechanism: str):
    domain = "domain = { sizes = [4] }" if mechanism != "subset-selection" else THREE
    with pytest.raises(
        SpecError, match=f"hold.epsilon: expected no such key with {mechanism}.*hold = H"
    ):
        held(mechanism, domain=domain)
    assert held(mechanism, "4", domain).hold.chain is None


def test_priors_are_not_held():
    with pytest.raises(SpecError, match=r"modes\.hold: expected no such key with lip"):
        held("lip", "4", 'domain = { values = ["a", "b"] }\nprior = 0.1')


def test_records_are_not_held():
    with pytest.raises(SpecError, match=r"modes\.hold: expected no such key for a domain of attr"):
        held(hold="4", domain="domain = { attributes = { a = { size = 3 }, b = { size = 4 } } }")
