"""Another size of windows, and windows of local days over a change of clocks, with real workers."""

import csv
import io
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ldpstream.mechanisms.base.times import format_time, parse_time
from tests.broker.conftest import on_kafka
from tests.brokers import Broker
from tests.lab import START_MS, Lab
from tests.pages import blocks
from tests.processes import PATIENCE_SECONDS
from tests.stream.cli import invoke

pytestmark = [pytest.mark.broker, on_kafka]

BERLIN = """mechanism = "block-hadamard"
epsilon = 1.0
domain = { size = 12, blocks = 4 }
partitions = 2
minimum = 1
window = { size = "1d", timezone = "Europe/Berlin", idle = "off", retention = "30d" }
publish = { every = "500ms", top = 12 }
"""
HOUR_MS = 3_600_000
SIZES = "Another size of windows"
HOURS = {
    "2026-10-24T00:00:00+02:00": 24,
    "2026-10-25T00:00:00+02:00": 25,
    "2026-10-26T00:00:00+01:00": 24,
}
"""The hours of local days by their start; clocks go back on the second one."""


def finals(lab: Lab, *options: str) -> tuple[list[dict[str, Any]], str]:
    """Return the documents that `ldpstream finals` prints, and what it says beside them."""
    result = invoke("finals", "-c", str(lab.file), *options, lab.collection.name)
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()], result.stderr


def published(lab: Lab, starts: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the finals of windows by start, once all are there."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        found = {one["window"]["start"]: one for one in finals(lab)[0]}
        if found.keys() >= set(starts):
            return found
        assert time.monotonic() < deadline, found.keys()
        time.sleep(0.2)


def send(lab: Lab, folder: Path, times: Sequence[str]) -> None:
    values = folder / "values.csv"
    values.write_text("".join(f"{time},{place % 12}\n" for place, time in enumerate(times)))
    result = invoke(
        "send", "-c", str(lab.file), "--times", "--replay", lab.collection.name, str(values)
    )
    assert result.exit_code == 0, result.stderr


def close(lab: Lab, until: str) -> None:
    assert (
        invoke("close", "-c", str(lab.file), "--until", until, lab.collection.name).exit_code == 0
    )


def test_windows_of_two_sizes_are_never_added_up(lab: Lab, tmp_path: Path):
    edges = [format_time(START_MS + 5_000 * at) for at in range(5)]
    with lab.worker() as worker:
        send(lab, tmp_path, edges[:4] * 10)
        close(lab, edges[4])
        published(lab, [edges[0], edges[2]])
        assert worker.terminate() == 0
    halved = lab.changed("halved.toml", ('size = "10s"', 'size = "5s"'))
    with halved.worker() as worker:
        close(halved, edges[4])
        published(halved, edges[:4])
        status = worker.get("/api/collections/trips/status")
        assert (status["size"], status["other_sizes"]) == ("5s", ["10s"])
        said = invoke("query", "--all", "--csv", worker.url, "trips")
        assert "ldpstream finals trips --size '10s'" in said.stderr
        assert {row["size"] for row in csv.DictReader(io.StringIO(said.stdout))} == {"5s"}
        assert worker.terminate() == 0
    topic, file = lab.collection.topics.estimates, tmp_path / "finals.parquet"
    for size, other, windows, n in (("5s", "10s", 4, 10), ("10s", "5s", 2, 20)):
        note = f"trips: left out the windows of {other} that {topic} also has: --size '{other}'"
        documents, said = finals(halved, "--size", size)
        assert said == f"{note} takes them\n"
        assert [(one["size"], one["n"]) for one in documents] == [(size, n)] * windows
        _, said = finals(halved, "--size", size, "--to", str(file))
        assert said.endswith(f"{windows} final windows stored\n")
    # Both sizes have windows that start at the same time: neither replaces the other.
    (statement,) = (
        one.code for one in blocks("docs/how-to/change-spec.md") if one.heading == SIZES
    )
    asked = duckdb.sql(statement.replace("finals.parquet", str(file)))
    assert dict(asked.fetchall()) == {"5s": 4, "10s": 2}
    first = f"SELECT size, sum(n) FROM '{file}' WHERE entry = 0 GROUP BY size"
    assert dict(duckdb.sql(first).fetchall()) == {"5s": 40, "10s": 40}


def test_a_day_on_which_clocks_change_has_its_own_hours(running: Broker, tmp_path: Path):
    lab = Lab(running, tmp_path, collections={"days": BERLIN})
    first_ms = parse_time("2026-10-24T00:00:00+02:00")
    # The first moment of each hour, or the last second.
    times = [first_ms + HOUR_MS * at + at % 2 * (HOUR_MS - 1_000) for at in range(73)]
    with lab.worker() as worker:
        send(lab, tmp_path, [format_time(time_ms) for time_ms in times])
        in_utc = lab.changed("utc.toml", ('timezone = "Europe/Berlin", ', ""))
        # A problem where the broker knows of the running worker, else a note.
        said = invoke("check", "-c", str(in_utc.file))
        assert "has window.timezone = Europe/Berlin, here UTC" in said.stdout + said.stderr
        close(lab, "2026-10-27T00:00:00+01:00")
        found = published(lab, list(HOURS))
        shown = invoke("query", "--all", worker.url, "days")
        assert worker.terminate() == 0
    assert {start: one["n"] for start, one in found.items()} == HOURS
    assert {one["size"] for one in found.values()} == {"1d, Europe/Berlin"}
    assert "days, 2026-10-25 (25 h), final, 25 reports" in shown.stdout
    # Stored again by a worker that reads the state from the changelog.
    with lab.worker() as worker:
        windows = worker.get("/api/collections/days/windows")["windows"]
        assert {one["window"]["start"]: one["n"] for one in windows} == HOURS
        assert worker.terminate() == 0
