"""Every run of the tests is alike: in what they draw, their order and environment."""

import gc
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.check import chosen
from tests.order import ByFile, in_order
from tests.seeded import seed_system
from tests.soak import CHECK

SET_BY_OTHERS = (
    # Colours and widths of terminals, and options of other tools.
    *("CI", "FORCE_COLOR", "CLICOLOR_FORCE", "PY_COLORS", "TTY_COMPATIBLE", "TTY_INTERACTIVE"),
    *("COLUMNS", "LINES", "NODE_OPTIONS", "PYTEST_ADDOPTS"),
    # The user's own broker and token.
    *("LDPSTREAM_KAFKA_BOOTSTRAP", "LDPSTREAM_READ_TOKEN", "LDPSTREAM_TOKEN"),
)
"""Variables that are unset for tests and for the programs they start."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Drop what `make check` leaves out, and order the tests that several processes share."""
    if CHECK:
        left = dict.fromkeys(chosen(items))
        config.hook.pytest_deselected(items=[item for item in items if item not in left])
        items[:] = left
    if hasattr(config, "workerinput"):
        items[:] = in_order(items)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, None, None]:
    """Collect without garbage collection, and leave what is collected out of it afterwards.

    Modules and tests stay to the end of the run; going through them takes a fifth of the time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile | None:
    """Hand out files to processes, for `--dist loadfile`."""
    return ByFile(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.hookimpl(tryfirst=True)
def pytest_configure() -> None:
    """Register profiles of Hypothesis: neither a rare example nor a busy machine fails a change.

    `make check` draws fewer examples; `--hypothesis-profile explore` draws new ones.
    """
    patient = {"deadline": None, "database": None, "suppress_health_check": [HealthCheck.too_slow]}
    settings.register_profile("same", derandomize=True, max_examples=50, **patient)
    settings.register_profile("explore", derandomize=False, max_examples=1_000, **patient)
    settings.register_profile("few", derandomize=True, max_examples=10, **patient)
    settings.load_profile("few" if CHECK else "same")
    seed_system("collection")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Seed the noise of devices by the test's name: a rare draw fails every run, or none."""
    seed_system(item.nodeid)


@pytest.fixture(scope="session", autouse=True)
def own_environment() -> Iterator[None]:
    """Unset variables of `SET_BY_OTHERS` and run from the root of the repository.

    Programs that tests start import `tests` from there.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(Path(__file__).resolve().parents[1])
        for name in SET_BY_OTHERS:
            patch.delenv(name, raising=False)
        yield
