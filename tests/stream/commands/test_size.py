"""`ldpstream plan --size` beside what runs take: the state of a driver, Kafka's records, frames."""

import json
from pathlib import Path

import numpy as np
import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from ldpstream.agents.cli.plans.size import FRAME_REPORTS, REPLICAS, SizePlan
from ldpstream.agents.engine.testing import Driver
from tests.stream.cli import configured, configured_modes, invoke

MODES = """
[collection.modes]
mechanism = "{mechanism}"
epsilon = 1.0
domain = {{ size = {values} }}
partitions = {partitions}
minimum = {minimum}
window = {{ size = "10m", grace = "10m", retention = "{kept}" }}
{more}
"""


@pytest.mark.parametrize(
    ("mechanism", "values", "partitions", "minimum", "kept", "respondents"),
    [
        ("randomized-response", 8, 1, 2, "8h", 200),
        ("randomized-response", 3000, 3, 100, "1h", 3000),
        ("block-hadamard", 9000, 4, 2, "1h", 20000),
    ],
)
def test_a_state_is_at_most_as_large_as_planned_and_nearly_so(
    tmp_path: Path,
    mechanism: str,
    values: int,
    partitions: int,
    minimum: int,
    kept: str,
    respondents: int,
):
    options = {"mechanism": mechanism, "values": values, "minimum": minimum, "kept": kept}
    text = MODES.format(more="", partitions=partitions, **options)
    collection = configured_modes(tmp_path, text)
    driver, rng = Driver(collection, start="2026-11-29T10:00:00Z"), np.random.default_rng(1)
    largest = 0
    for _ in range(collection.window.retention_ms // collection.window.size_ms + 3):
        for _ in range(partitions):
            driver.send(rng.integers(0, values, respondents // partitions))
        driver.advance("9m")
        largest = max(largest, sum(replica.size_bytes for replica in driver._replicas))
        driver.advance("1m")
    planned = SizePlan.of(collection, respondents).state_bytes
    assert 0.5 * planned < largest <= planned


@pytest.mark.parametrize("more", ["", "one_report = true"])
def test_the_source_has_the_bytes_of_its_records(tmp_path: Path, more: str):
    options = {"mechanism": "randomized-response", "values": 8, "minimum": 2, "kept": "1h"}
    collection = configured_modes(tmp_path, MODES.format(more=more, partitions=2, **options))
    size, spec = SizePlan.of(collection, 1000), collection.spec
    reports = [1, FRAME_REPORTS] if not more else [1]
    for n, planned in zip(reports, size.source_bytes_a_day, strict=False):
        frame = spec.frame([3] * n, secret=bytes(32) if more else None)
        batch = DefaultRecordBatchBuilder(2, 0, False, -1, -1, 0, 1 << 20)
        batch.append(0, 1_795_946_400_000, None, frame, [])
        messages = size.reports_a_day / n
        assert planned / messages == pytest.approx(len(batch.build()), rel=0.02)
    assert size.reports_a_day == 144_000
    assert size.source_bytes[0] == pytest.approx(7 * REPLICAS * size.source_bytes_a_day[0])


def test_it_says_how_many_workers_and_where_partitions_are_too_few(tmp_path: Path):
    options = {"mechanism": "randomized-response", "values": 8, "minimum": 2, "kept": "1h"}
    file = configured(tmp_path, MODES.format(more="", partitions=2, **options))
    command = "plan", "-c", file, "modes", "--size", "--respondents"
    few, many = (invoke(*command, n).stdout for n in ("3000", "60000000"))
    assert few.startswith("modes: 3,000 respondents in each window of 10m, 432,000 reports a day")
    assert "fewer than" not in few
    assert "collection.modes.partitions: fewer than workers: set 4" in many
    assert json.loads(invoke(*command, "60000000", "--json").stdout)["workers"] == 4
