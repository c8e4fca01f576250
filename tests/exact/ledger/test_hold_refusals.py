"""`hold` in a spec: the fingerprint covers it, and what cannot be held is refused."""

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
        ("{ windows = 4, often = 1 }", "hold.often: expected one of the keys epsilon, windows"),
        ("{ windows = 4, epsilon = 1.0 }", "hold.epsilon: expected more than epsilon"),
        ("{ windows = 4, epsilon = inf }", "hold.epsilon: expected a finite number"),
    ],
)
def test_what_cannot_be_held_is_refused(hold: str, said: str):
    with pytest.raises(SpecError, match=said.replace("(", r"\(")):
        held(hold=hold)


LINE = "domain = { sizes = [4] }"


@pytest.mark.parametrize(
    ("mechanism", "domain", "said"),
    [
        ("matrix", f'{LINE}\nstrategy = "prefix"\npolicy = {{ metric = "l1" }}', "matrix"),
        ("l1-bits", f"{LINE}\nweights = {{ public = 3 }}", "public weights"),
        ("l1-geometric", f"{LINE}\nweights = {{ public = 3 }}", "public weights"),
        ("optimal", 'domain = { size = 4 }\nchannel = "channels/lip.json"', "a channel for priors"),
    ],
)
def test_mechanisms_without_a_chain_say_what_to_write(mechanism: str, domain: str, said: str):
    with pytest.raises(
        SpecError, match=f"hold.epsilon: expected no such key with {said}.*hold = H"
    ):
        held(mechanism, domain=domain)
    assert held(mechanism, "4", domain).hold.chain is None


@pytest.mark.parametrize(
    ("mechanism", "epsilon", "said"),
    [
        ("binary", "2.00", r"hold\.epsilon: expected a list of two numbers above 0"),
        (
            "binary",
            "[1.0, 0.6]",
            r"hold\.epsilon: expected one budget above epsilon's, the other no less: 1, 0\.6",
        ),
        (
            "binary",
            "[2.0, 0.5]",
            r"hold\.epsilon\[1\]: expected at least epsilon\[1\], which is 0\.6",
        ),
        ("binary", "[inf, 0.6]", r"hold\.epsilon\[0\]: expected a finite number, as epsilon has"),
        ("binary", "[1.0, 2.0]", "expected both further above epsilon"),
        ("l1-bits", "1.0", "expected more than epsilon"),
        ("l1-geometric", "0.9", "expected more than epsilon"),
        ("optimal", "1.0", "expected more than epsilon"),
        ("subset-selection", "0.5", "expected more than epsilon"),
    ],
)
def test_draws_that_disclose_no_more_than_a_report_are_refused(
    mechanism: str, epsilon: str, said: str
):
    with pytest.raises(SpecError, match=said):
        held(mechanism, f"{{ windows = 4, epsilon = {epsilon} }}")


def test_priors_are_not_held():
    with pytest.raises(SpecError, match=r"modes\.hold: expected no such key with lip"):
        held("lip", "4", 'domain = { values = ["a", "b"] }\nprior = 0.1')


def test_records_are_not_held():
    with pytest.raises(SpecError, match=r"modes\.hold: expected no such key for a domain of attr"):
        held(hold="4", domain="domain = { attributes = { a = { size = 3 }, b = { size = 4 } } }")
