"""The order in which processes take test files: longest first, waiting and computing ones mixed.

Tests of brokers and of the page mostly wait for other processes, so files that compute run next to
them. The shortest files come last, and all processes finish together.
"""

from itertools import accumulate
from typing import Final

import pytest
from xdist.scheduler import LoadFileScheduling

WAITING: Final = {
    "crash": 15.0,
    "attack": 8.0,
    "broker": 6.0,
    "javascript": 4.0,
    "browser": 1.5,
    "gateway": 2.0,
    "ops": 0.3,
}
"""Folders whose tests wait, and roughly how many seconds one test takes."""
COMPUTING: Final = {"statistical": 0.5, "house": 0.2, "property": 0.2, "conformance": 0.03}
"""The same for folders whose tests compute; `OTHERS` is for folders not listed."""
OTHERS: Final = 0.1
FILES: Final = {
    "attack/test_attacks.py": 150,
    "crash/test_faults.py": 70,
    "broker/pages/test_demo.py": 60,
    "crash/test_idle.py": 45,
    "crash/test_nodes.py": 40,
    "broker/pages/test_readme.py": 40,
    "ops/test_compose_natively.py": 40,
    "broker/test_every_mechanism.py": 30,
    "stream/commands/test_plan.py": 10,
    "browser/test_accessible.py": 15,
    "house/test_guide_mechanism.py": 10,
    "ops/test_prometheus.py": 20,
    "stream/http/test_http_hostile.py": 20,
    "stream/commands/test_cli_no_broker.py": 20,
    "exact/planning/test_best_channels.py": 5,
    "stream/http/test_apart.py": 10,
    "ops/test_queries.py": 3,
}
"""Seconds of whole files that the number of tests does not predict."""

TOGETHER: Final = {"broker/pages/test_permissions.py": "broker/pages/test_listeners.py"}
"""Files that go to the same process as another one: they share a fixture that starts slowly."""


class ByFile(LoadFileScheduling):
    """Give a process one file after the other, and those in `TOGETHER` as one."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid).removeprefix("tests/")
        return TOGETHER.get(file, file)


def in_order(items: list[pytest.Item]) -> list[pytest.Item]:
    """Return the tests file by file, longest first among those that wait and among the others."""
    files: dict[str, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.nodeid.partition("::")[0], []).append(item)
    waiting = {name: WAITING[folder] for name in files if (folder := _folder(name)) in WAITING}
    others = {name: COMPUTING.get(_folder(name), OTHERS) for name in files.keys() - waiting.keys()}
    places: dict[str, float] = {}
    for kind in (waiting, others):
        seconds = {
            name: FILES.get(name.removeprefix("tests/"), kind[name] * len(files[name]))
            for name in sorted(kind)
        }
        names = sorted(seconds, key=lambda name: -seconds[name])
        ends = [0.0, *accumulate(seconds[name] for name in names)]
        # The share of its kind that comes before a file, so that both kinds advance together.
        places |= {name: end / ends[-1] for name, end in zip(names, ends, strict=False)}
    return [item for name in sorted(places, key=lambda name: places[name]) for item in files[name]]


def _folder(name: str) -> str:
    return name.split("/")[1]
