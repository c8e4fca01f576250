"""Tests draw from seeded generators alone, and so give the same answer in every run."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from ldpstream.mechanisms import SystemEntropy
from tests import forked
from tests.seeded import seed_system

TESTS = Path(__file__).resolve().parents[1]
MAKERS = {"default_rng", "Random", "PCG64", "SeedSequence"}
DRAWS = {"random", "randint", "randrange", "choice", "choices", "sample", "shuffle", "uniform"}
"""Functions of the module `random`, whose own generator the system seeds."""


def test_hypothesis_draws_the_same_examples_in_every_run():
    assert settings.default is not None
    assert settings.default.derandomize
    assert settings.default.deadline is None
    assert settings.default.database is None


def words_of_a_program() -> list[str]:
    """Return words of the system's generator, as a program that is started draws them."""
    code = "from ldpstream.mechanisms import SystemEntropy; print(*SystemEntropy().words(2))"
    return forked.run([], program=code).stdout.decode().split()


def test_noise_of_the_system_is_seeded_by_the_tests_name(request: pytest.FixtureRequest):
    first = SystemEntropy().words(2).tolist()
    seed_system(request.node.nodeid)
    assert SystemEntropy().words(2).tolist() == first
    found = [words_of_a_program() for _ in range(2)]
    assert found[0] != found[1], "programs of one test draw different noise"
    for number, words in enumerate(found, 1):
        seed_system(f"{request.node.nodeid} {number}")
        assert words == list(map(str, SystemEntropy().words(2)))


def test_every_generator_has_a_seed():
    texts = {file: file.read_text("utf-8") for file in sorted(TESTS.rglob("*.py"))}
    found = {
        file: list(unseeded(ast.parse(text)))
        for file, text in texts.items()
        if any(word in text for word in ("random", *MAKERS))
    }
    assert {file: calls for file, calls in found.items() if calls} == {}


@pytest.mark.parametrize(
    "code",
    ["rng = np.random.default_rng()", "random.Random()", "random.shuffle(x)", "np.random.rand(3)"],
)
def test_a_generator_without_a_seed_is_found(code: str):
    assert list(unseeded(ast.parse(code))) != []


@pytest.mark.parametrize(
    "code", ["np.random.default_rng([1, 2])", "random.Random(1)", "rng.choice(x)"]
)
def test_a_generator_with_a_seed_is_not(code: str):
    assert list(unseeded(ast.parse(code))) == []


def unseeded(tree: ast.AST) -> Iterator[str]:
    """Yield the calls that make, or draw from, a generator without a seed."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            module, _, name = called.rpartition(".")
            makes = name in MAKERS and not node.args and not node.keywords
            draws = module == "random" and name in DRAWS
            # Classes begin with a capital; the functions draw from NumPy's global generator.
            legacy = module == "np.random" and name.islower() and name not in MAKERS
            if makes or draws or legacy:
                yield f"line {node.lineno}: {called}"
