"""The privacy statement of every mechanism: factors are exact, and rounded up."""

import math
import re
import tomllib
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path

import pytest
from aiohttp.test_utils import TestClient, TestServer
from hypothesis import given
from hypothesis import strategies as st

from ldpstream.agents.config.privacy.factors import factor_text, nominal_warning
from ldpstream.agents.config.privacy.statement import privacy_statement
from ldpstream.agents.web import build_http
from ldpstream.mechanisms import MECHANISMS
from ldpstream.mechanisms.wire.spec import CollectionSpec
from tests.stream.cli import configured_modes
from tests.stream.serving import CITY, serve_collections

LABELS = ('{ values = ["no", "yes"] }',)
SIZES = ("{ size = 2 }", "{ size = 7 }", "{ size = 33 }")
UNEQUAL = "{ size = 9, blocks = [[0], [1, 2, 3, 4, 5], [6, 7], [8]] }"
LARGE = "{ size = 300, blocks = 40 }"
BLOCKWISE = (*SIZES, "{ size = 64 }", UNEQUAL, "{ grid = [5, 7], blocks = [2, 3] }", LARGE)
INTERVAL = "{ interval = [0.0, 1.0], bins = 10 }"
ROUNDED = '{ interval = [0.0, 1.0], bins = 10, rounding = "random" }'
ORDERED = (
    *SIZES,
    "{ sizes = [3, 1, 4] }",
    "{ grid = [5, 7] }",
    INTERVAL,
    ROUNDED,
    "{ size = 300 }",
)
CHANNELS = Path(__file__).parents[2] / "vectors" / "channels"
CHANNEL_SIZES = {"asymmetric": 3, "classical": 5, "line": 6, "graph": 6, "lip": 4}


def tables(domains: tuple[str, ...], more: str = "", epsilon: str = "1.0") -> list[str]:
    return [f"epsilon = {epsilon}\ndomain = {domain}\n{more}" for domain in domains]


GRID: dict[str, list[str]] = {
    **dict.fromkeys(
        ("block-hadamard", "randomized-response", "projective-geometry", "subset-selection"),
        tables(BLOCKWISE),
    ),
    "binary": [
        *tables(LABELS, epsilon="[1e-6, 1e-6]"),
        *tables(LABELS, epsilon="[0.1, 5.0]"),
        *tables(LABELS, epsilon="[inf, 1.0]"),
        *tables(LABELS, epsilon="[50.0, inf]"),
    ],
    "groups": tables(SIZES, "sensitive = [0]"),
    "high-low": tables(SIZES, "sensitive = [0]")
    + tables(("{ size = 300 }",), "sensitive = [1, 5, 6, 200]"),
    "l1-bits": tables(ORDERED),
    "l1-geometric": tables(ORDERED)
    + tables(("{ size = 40 }", "{ grid = [6, 6] }"), "weights = { private = 3 }")
    + tables(("{ grid = [5, 7] }",), 'policy = { metric = "l2" }'),
    "lip": [
        table
        for prior in ("0.01", "0.5", "{ levels = 16 }")
        for table in tables(LABELS, f"prior = {prior}")
    ],
    "matrix": [
        table
        for strategy in ("identity", "prefix", "hierarchical", "haar", "best")
        for table in tables(SIZES, f'strategy = "{strategy}"')
    ],
    "tree": tables((*SIZES, UNEQUAL, "{ sizes = [3, 1, 4] }", INTERVAL, LARGE)),
    "optimal": [
        f'domain = {{ size = {size} }}\nchannel = "{CHANNELS}/{name}.json"'
        for name, size in CHANNEL_SIZES.items()
    ],
}
"""Tables of every mechanism; tests/conformance certifies each with tiny and huge budgets."""


def test_every_mechanism_has_a_grid():
    # What is said of `sampled` is made of what is said of its attributes.
    assert set(GRID) | {"sampled"} == set(MECHANISMS)


def spec_of(mechanism: str, table: str) -> CollectionSpec:
    mapping = {"mechanism": mechanism, **tomllib.loads(table)}
    return CollectionSpec.from_mapping("case", mapping, base=Path())


def say(mechanism: str, table: str) -> str:
    statement = privacy_statement(spec_of(mechanism, table))
    return " ".join(statement.protected)


@given(st.fractions(min_value=0, max_value=900, max_denominator=10**6))
def test_factors_are_never_rounded_down(exponent: Fraction):
    shown = Decimal(factor_text(exponent))
    with localcontext() as context:
        context.prec = 600
        true = (Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp()
        assert shown >= true
        # Rounded up, but by less than a tenth of the excess over 1.
        assert shown - 1 <= (true - 1) * Decimal("1.1") + Decimal("1e-12")


@pytest.mark.parametrize(
    ("table", "budget", "sentences"),
    [
        (
            "epsilon = [1.0, 2.0]\ndomain = { size = 6, blocks = 3 }",
            "1 to 2 in a block",
            ("of one block are indistinguishable up to a factor 2.72 to 7.39, depending on the",),
        ),
        (
            "epsilon = 1.0\nepsilon_outside = 2.0\ndomain = { size = 6, blocks = 3 }",
            "1 in a group, 2 outside",
            ("of one group are indistinguishable up to a factor 2.72.", "a factor of 7.39."),
        ),
        (
            "epsilon = [1.0, 2.0]\nsensitive = [[0, 1], [2]]\ndomain = { size = 6 }",
            "1 to 2, depending on the value",
            ("3 of 6 values are protected", "2.72 to 7.39", "3 values are not hidden"),
        ),
        (
            "epsilon = 1.0\nepsilon_outside = [2.0, inf]\ndomain = { size = 6, blocks = 3 }",
            "1 in a group, 2 outside",
            ("3 of 6 values are protected", "1 group is not hidden"),
        ),
    ],
)
def test_groups_say_their_budgets(table: str, budget: str, sentences: tuple[str, ...]):
    assert privacy_statement(spec_of("groups", table)).epsilon == budget
    assert all(sentence in say("groups", table) for sentence in sentences)


def test_factors_as_people_read_them():
    budgets = ("0", "1", "2", "1/1000000", "693/1000", "10", "50", "1001")
    assert [factor_text(Fraction(budget)) for budget in budgets] == [
        "1",
        "2.72",
        "7.39",
        "1.0000011",
        "2",
        "22027",
        "5.2e+21",
        "e^1001",
    ]
    with pytest.raises(ValueError, match="at least 0"):
        factor_text(Fraction(-1))


@pytest.mark.parametrize(
    ("mechanism", "table", "said"),
    [
        ("randomized-response", "epsilon = 3.0\ndomain = { size = 4 }", "3"),
        ("block-hadamard", "epsilon = 1.5\ndomain = { size = 4, blocks = 2 }", "1.5 in a block"),
        ("l1-bits", "epsilon = 0.4\ndomain = { interval = [0, 9], bins = 3 }", "0.4 for each 3"),
        (
            "l1-geometric",
            'epsilon = 2.0\ndomain = { interval = [0.0, 0.7], bins = 7, rounding = "random" }',
            "2 for each 0.1",
        ),
        ("l1-geometric", "epsilon = 2.0\ndomain = { size = 7 }", "2 a step"),
        ("binary", "epsilon = [1.0, 2.0]\ndomain = { size = 2 }", "1 to 2"),
        ("lip", "epsilon = 1.0\nprior = 0.1\ndomain = { size = 2 }", "1 from a prior"),
    ],
)  # fmt: skip
def test_epsilon_is_told_with_its_unit(mechanism: str, table: str, said: str):
    assert privacy_statement(spec_of(mechanism, table)).epsilon == said


@pytest.mark.parametrize("mechanism", GRID)
def test_every_mechanism_says_what_it_hides_and_what_it_discloses(mechanism: str):
    for table in GRID[mechanism]:
        spec = spec_of(mechanism, table)
        statement = privacy_statement(spec)
        assert len(statement.protected) >= 2
        assert statement.disclosed == spec.disclosed()
        assert statement.unprotected == spec.mechanism.policy.unprotected
        for sentence in statement.protected:
            assert sentence[0].isupper() or sentence[0] in "“0123456789"
            assert sentence.endswith(".")
            assert "nan" not in sentence
            assert "None" not in sentence


@pytest.mark.parametrize("mechanism", ["block-hadamard", "binary", "l1-geometric", "high-low"])
def test_no_pair_is_more_distinguishable_than_stated(mechanism: str):
    """The largest finite entry of the policy is no larger than the largest factor in the words."""
    for table in GRID[mechanism]:
        policy = spec_of(mechanism, table).mechanism.policy
        if policy.size > 64:
            continue
        entries = [policy.entry(x, o) for x in range(policy.size) for o in range(policy.size)]
        largest = max(entry for entry in entries if entry is not None)
        text = say(mechanism, table)
        numbers = re.findall(r"(?:factor|than) (\d[\d.]*(?:e\+\d+)?)(?![\d^])", text)
        said = max(Decimal(number.rstrip(".")) for number in numbers)
        assert said.ln() >= Decimal(math.nextafter(float(largest), 0)), (table, text)


def test_blocks_say_that_places_are_hidden_and_blocks_are_not():
    text = say("block-hadamard", "epsilon = 1.0\ndomain = { grid = [6, 10], blocks = [3, 5] }")
    assert "Any two places of one block are indistinguishable up to a factor 2.72" in text
    assert "The block itself is not hidden: a report tells which of 4 blocks, of 15 places" in text
    one = say("block-hadamard", "epsilon = 1.0\ndomain = { size = 9 }")
    assert "Any two values are indistinguishable up to a factor 2.72" in one
    assert "block" not in one
    alone = say("block-hadamard", "epsilon = 1.0\ndomain = { size = 4, blocks = [[0], [1, 2, 3]] }")
    assert "1 block has a single value, which a report tells." in alone


def test_the_two_directions_of_binary_are_stated_separately():
    domain = 'domain = { values = ["no", "yes"] }'
    text = say("binary", f"epsilon = [1.0, 2.0]\n{domain}")
    assert "No report is more than 2.72 times likelier for “no” than for “yes”." in text
    assert "No report is more than 7.39 times likelier for “yes” than for “no”." in text
    open_one = say("binary", f"epsilon = [inf, 1.0]\n{domain}")
    assert "“no” is not hidden: a report may tell that it is not “yes”." in open_one


def test_sensitive_values_steps_and_priors():
    high_low = say("high-low", "epsilon = 1.0\ndomain = { size = 7 }\nsensitive = [0]")
    assert "1 of 7 values are sensitive: no report is more than 2.72 times likelier" in high_low
    line = say("l1-geometric", "epsilon = 0.1\ndomain = { size = 11 }")
    assert "Two values one step apart are indistinguishable up to a factor 1.11" in line
    assert "distinguishable up to a factor 2.72." in line
    straight = 'epsilon = 0.1\ndomain = { grid = [5, 7] }\npolicy = { metric = "l2" }'
    assert "Distances are straight ones" in say("l1-geometric", straight)
    weighted = "epsilon = 0.1\ndomain = { size = 5 }\nweights = { %s = 3 }"
    assert "larger by one counts as one step" in say("l1-geometric", weighted % "private")
    assert "Weights are not hidden" in say("l1-geometric", weighted % "public")
    lip = say("lip", 'epsilon = 1.0\nprior = 0.1\ndomain = { values = ["no", "yes"] }')
    assert "changes the probability of each value by at most a factor 2.72, up or down" in lip


def test_rounded_numbers_are_protected_by_their_distance():
    """Epsilon is for a distance of one bin: e^0.5 = 1.6487..."""
    domain = 'domain = { interval = [0.0, 1.0], bins = 10, rounding = "random" }'
    text = say("l1-geometric", f"epsilon = 0.5\n{domain}")
    assert "one width apart (0.1) are indistinguishable up to a factor 1.65" in text


async def test_the_api_answers_the_statement_and_the_shape_of_the_domain():
    async with TestClient(TestServer(build_http(serve_collections({"city": CITY})))) as client:
        (city,) = (await (await client.get("/api/collections")).json())["collections"]
    assert city["domain"] == {
        "kind": "grid",
        "shape": [6, 10],
        "ordered": True,
        "intervals": None,
        "rounded": False,
        "blocks": 4,
    }
    assert city["privacy"]["protected"][0].startswith("Any two places of one block are")
    assert (
        city["privacy"]["unprotected"] == "values in different blocks: a report reveals the block"
    )
    assert any("the event time, cut to 1s" in one for one in city["privacy"]["disclosed"])


@pytest.mark.parametrize(
    ("mechanism", "table", "least"),
    [
        ("block-hadamard", "epsilon = {}\ndomain = {{ grid = [125, 350], blocks = [25, 35] }}", 10),
        ("high-low", "epsilon = {}\ndomain = {{ size = 100000 }}\nsensitive = [99999]", 10),
        ("binary", "epsilon = [{}, inf]\ndomain = {{ size = 2 }}", 10),
        ("binary", "epsilon = [{}, 90.0]\ndomain = {{ size = 2 }}", 10),
        ("l1-geometric", "epsilon = {}\ndomain = {{ sizes = [1000, 1000] }}", 10),
        ("l1-bits", "epsilon = {}\ndomain = {{ size = 9 }}\nweights = {{ public = 3 }}", 10),
        ("lip", "epsilon = {}\nprior = 0.3\ndomain = {{ size = 2 }}", 10),
        ("matrix", 'epsilon = {}\nstrategy = "identity"\ndomain = {{ values = ["a", "b"] }}', 10),
    ],
)
def test_a_nominal_budget_is_warned_of(mechanism: str, table: str, least: float):
    policy = spec_of(mechanism, table.format(float(least))).mechanism.policy
    assert nominal_warning("c", policy) is None
    said = nominal_warning("c", spec_of(mechanism, table.format(12.5)).mechanism.policy)
    assert said.startswith("collection.c: warning: its least budget is 12.5, so a report may be ")
    assert f"e^12.5 = {factor_text(Fraction(25, 2))} times likelier" in said


OVER_TIME = {
    "": [
        ("one report", 1, "1", "2.72"),
        ("any 24 hours: 25 windows", 25, "25", "no limit"),
        ("any 365 days: 8,761 windows", 8761, "8761", "no limit"),
    ],
    'spread = { reports = 4, horizon = "1d" }': [
        ("one report", 1, "1", "2.72"),
        ("a period of 1d", 4, "4", "54.6"),
        ("any 24 windows in a row", 8, "8", "2981"),
        # They touch up to 366 periods.
        ("any 365 days: 8,761 windows", 1464, "1464", "no limit"),
    ],
    'spread = { reports = 4, horizon = "1d", rolling = true }': [
        ("one report", 1, "1", "2.72"),
        ("a period of 1d", 4, "4", "54.6"),
        ("any 365 days: 8,761 windows", 1461, "1461", "no limit"),
    ],
    "hold = 2184": [  # 91 days
        ("one report", 1, "1", "2.72"),
        ("an epoch of 91d", 1, "1", "2.72"),
        ("any 365 days: 8,761 windows", 6, "6", "404"),
    ],
    "hold = { windows = 2184, epsilon = 2.0 }": [
        ("one report", 1, "1", "2.72"),
        ("an epoch of 91d", 1, "2", "7.39"),
        ("any 365 days: 8,761 windows", 6, "12", "162755"),
    ],
}


@pytest.mark.parametrize("table", OVER_TIME)
def test_what_is_spent_over_time_follows_from_what_devices_do(tmp_path: Path, table: str):
    text = 'mechanism = "randomized-response"\nepsilon = 1.0\ndomain = { size = 3 }\n'
    privacy = configured_modes(tmp_path, f"[collection.modes]\n{text}{table}\n").privacy
    found = [(one.over, one.charges, one.loss, one.factor) for one in privacy.spent]
    assert found == OVER_TIME[table]
    assert privacy.limit == (table.split()[0] if table else None)


def test_where_windows_overlap_a_ledger_reports_in_each_pane(tmp_path: Path):
    text = 'mechanism = "randomized-response"\nepsilon = 1.0\ndomain = { size = 3 }\n'
    text += 'window = { size = "1d", hop = "1h" }\n'
    privacy = configured_modes(tmp_path, f"[collection.modes]\n{text}").privacy
    found = [(one.over, one.charges, one.loss, one.factor) for one in privacy.spent]
    assert found == OVER_TIME[""]


def test_long_windows_are_added_up_to_a_year_alone(tmp_path: Path):
    text = 'mechanism = "binary"\nepsilon = [inf, 1e-3]\ndomain = { values = ["no", "yes"] }\n'
    for size, charges in (("1d", [1, 8, 366]), ("7d", [1, 54])):
        window = f'window = {{ size = "{size}" }}\n'
        privacy = configured_modes(tmp_path, f"[collection.modes]\n{text}{window}").privacy
        assert [one.charges for one in privacy.spent] == charges
    assert privacy.spent[0].loss == "0.001"


def test_what_is_spent_is_between_the_values_that_are_hidden_least(tmp_path: Path):
    for text, loss in (
        ('mechanism = "l1-geometric"\nepsilon = 0.4\ndomain = { size = 50 }\n', "19.6"),
        # For priors it is the local differential privacy that follows: up to twice epsilon.
        (
            'mechanism = "lip"\nepsilon = 1.0\nprior = 0.5\ndomain = { values = ["a", "b"] }\n',
            "1.49",
        ),
    ):
        privacy = configured_modes(tmp_path, f"[collection.modes]\n{text}").privacy
        assert privacy.spent[0].loss == loss


def test_a_run_of_rounds_costs_one_report(tmp_path: Path):
    text = 'mechanism = "block-hadamard"\nepsilon = 3.0\nwindow = { size = "1d" }\n'
    text += "domain = { words = { bits = 64, rounds = 8 } }\n"
    privacy = configured_modes(tmp_path, f"[collection.modes]\n{text}").privacy
    assert [(one.over, one.charges) for one in privacy.spent] == [
        ("one report", 1),
        ("a run of 8 rounds", 1),
        ("any 365 days: 366 windows", 47),
    ]
    assert privacy.limit == "words"
