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
    "attack": 4.0,
    "broker": 5.0,
    "javascript": 4.0,
    "browser": 3.0,
    "gateway": 2.0,
    "ops": 0.3,
}
"""Folders whose tests wait, and roughly how many seconds one test takes."""
COMPUTING: Final = {"statistical": 0.5, "house": 0.2, "property": 0.2, "conformance": 0.03}
"""The same for folders whose tests compute; `OTHERS` is for folders not listed."""
OTHERS: Final = 0.1
FILES: Final = {
    "crash/test_faults.py": 150,
    "browser/test_live.py": 80,
    "broker/pages/test_go_live.py": 45,
    "broker/pages/test_runbooks.py": 80,
    "browser/test_accessible.py": 75,
    "crash/test_ledger.py": 70,
    "broker/trouble/test_clocks.py": 70,
    "browser/test_tooltip.py": 65,
    "browser/test_privacy.py": 50,
    "exact/planning/test_channel_bounds.py": 40,
    "broker/test_plugin.py": 50,
    "broker/trouble/test_trouble.py": 50,
    "attack/test_attacks.py": 50,
    "broker/trouble/test_settings.py": 40,
    "browser/test_keyboard.py": 60,
    "browser/test_map.py": 35,
    "broker/trouble/test_fairness.py": 60,
    "broker/trouble/test_groups.py": 75,
    "broker/test_rolling.py": 45,
    "broker/windows/test_windows.py": 55,
    "broker/windows/test_minimum.py": 30,
    "broker/pages/test_demo.py": 30,
    "broker/trouble/test_producers.py": 35,
    "browser/test_trouble.py": 25,
    "browser/test_shape.py": 25,
    "broker/pages/test_first_collection.py": 25,
    "ops/test_alerts.py": 25,
    "javascript/test_node.py": 25,
    "ops/test_compose_natively.py": 25,
    "javascript/test_types.py": 20,
    "broker/test_pipeline.py": 35,
    "ops/test_prometheus.py": 15,
    "broker/test_commands.py": 15,
    "broker/pages/test_devices_page.py": 25,
    "ops/test_queries.py": 3,
    "stream/http/test_certificate.py": 45,
    "stream/http/test_apart.py": 45,
    "house/test_guide_mechanism.py": 40,
    "statistical/test_anytime.py": 35,
    "stream/commands/test_plan.py": 35,
    "house/test_loading.py": 25,
    "stream/http/test_http_fuzz.py": 20,
    "stream/documents/test_minimum.py": 20,
    "stream/documents/test_minimum_block.py": 20,
    "statistical/test_padded_coverage.py": 25,
    "statistical/test_public_weights.py": 20,
    "property/test_policy_algebra.py": 20,
    "property/test_block_mechanisms.py": 15,
    "stream/simulations/test_simulation.py": 40,
    "stream/simulations/test_mutants.py": 25,
    "house/test_release.py": 20,
    "house/test_private_names.py": 15,
    "house/test_journeys.py": 15,
    "exact/ledger/test_ledger_file.py": 15,
    "exact/planning/test_plan.py": 15,
    "exact/planning/test_best_channels.py": 15,
    "exact/privacy/test_certificates.py": 15,
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
