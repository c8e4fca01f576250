"""What is mathematics is a method of its class, and what is said to people is in one table."""

from inspect import isabstract

from ldpstream.agents.config.privacy import policies
from ldpstream.mechanisms.policies.policy import Policy
from tests.house.rooms import sources
from tests.house.type_tests import kinds, type_tests

TEXTS = {
    "a.py": "class Policy: ...\nclass Domain: ...\nclass Mechanism: ...\nclass One(Policy): ...\n",
    "b.py": """
from a import One, Policy
import a

def few(x):
    if isinstance(x, int | One) or isinstance(x, str) or type(x) is a.Domain:
        return issubclass(type(x), (Policy, int))
    match x:
        case One():
            return 1
        case int():
            return {One: 1}[type(x)]
""",
}


def test_every_way_to_ask_is_counted():
    assert kinds(TEXTS) == {"Policy", "Domain", "Mechanism", "One"}
    assert [(one.line, one.classes) for one in type_tests(TEXTS)] == [
        (6, ("One",)),
        (6, ("Domain",)),
        (7, ("Policy",)),
        (9, ("One",)),
    ]


def test_few_places_ask_what_kind_a_policy_mechanism_or_domain_is():
    found = [f"{file}:{line}" for file, line, _ in type_tests(sources())]
    assert len(found) <= 40, found


def test_every_policy_has_its_sentences():
    below = {kind for base in Policy.__subclasses__() for kind in (base, *base.__subclasses__())}
    assert set(policies._TEXTS) == {kind for kind in below if not isabstract(kind)}
