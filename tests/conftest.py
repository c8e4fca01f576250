"""What surrounds a test is the same in every run: the examples it draws, and the environment."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.check import chosen
from tests.order import ByFile, in_order
from tests.soak import CHECK

SET_BY_OTHERS = (
    # Who colours what goes into a pipe, and how wide it is.
    *("CI", "FORCE_COLOR", "CLICOLOR_FORCE", "PY_COLORS", "TTY_COMPATIBLE", "TTY_INTERACTIVE"),
    *("COLUMNS", "LINES", "NODE_OPTIONS", "PYTEST_ADDOPTS"),
    # The user's own broker and token.
    *("LDPSTREAM_KAFKA_BOOTSTRAP", "LDPSTREAM_READ_TOKEN", "LDPSTREAM_TOKEN"),
)
"""Variables that no test, and nothing that a test starts, is to be changed by."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what `make check` does not run, and order what several processes share."""
    if CHECK:
        left = dict.fromkeys(chosen(items))
        config.hook.pytest_deselected(items=[item for item in items if item not in left])
        items[:] = left
    if hasattr(config, "workerinput"):
        items[:] = in_order(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile | None:
    """Hand out files to processes, for `--dist loadfile`."""
    return ByFile(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.hookimpl(tryfirst=True)
def pytest_configure() -> None:
    """Let a rare example, or a busy machine, fail nobody's change.

    `make check` draws fewer examples; `--hypothesis-profile explore` looks for examples that nobody
    has seen.
    """
    patient = {"deadline": None, "database": None, "suppress_health_check": [HealthCheck.too_slow]}
    settings.register_profile("same", derandomize=True, max_examples=50, **patient)
    settings.register_profile("explore", derandomize=False, max_examples=1_000, **patient)
    settings.register_profile("few", derandomize=True, max_examples=10, **patient)
    settings.load_profile("few" if CHECK else "same")


@pytest.fixture(scope="session", autouse=True)
def own_environment() -> Iterator[None]:
    """Take away what others have set for as long as tests run, and run them from the root.

    Programs that tests start import `tests` from there.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(Path(__file__).resolve().parents[1])
        for name in SET_BY_OTHERS:
            patch.delenv(name, raising=False)
        yield
