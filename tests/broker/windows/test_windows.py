"""Windows with real workers: another size, local days, and what holds none open."""

import asyncio
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
from tests.processes import PATIENCE_SECONDS, Worker, eventually
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


WINDOW = 'grace = "1s", idle = "3s"'
ACCEPTING = ("epsilon = 1.0", 'epsilon = 2.0\naccept = ["ldpstream.toml"]')


def report(lab: Lab) -> bytes:
    """Return a frame of one report of now, and enter it."""
    now_ms = time.time_ns() // 1_000_000
    return lab.frame(1, first_ms=now_ms, last_ms=now_ms)


async def send_again(
    lab: Lab, messages: Sequence[tuple[int, Lab | bytes]], stop: asyncio.Event, *, seconds: float
) -> None:
    """Send these messages, or reports of these labs, to partitions again and again."""
    async with lab.producer() as producer:
        while not stop.is_set():
            for partition, message in messages:
                value = message if isinstance(message, bytes) else report(message)
                await producer.send(lab.collection.topics.source, value, partition=partition)
            await asyncio.sleep(seconds)


async def first_finals(lab: Lab, count: int) -> None:
    """Wait until some windows are final."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(await lab.finals()) < count:
        assert time.monotonic() < deadline, await lab.heads()
        await asyncio.sleep(0.3)


async def test_windows_close_while_a_partition_gets_only_refused_messages(
    running: Broker, tmp_path: Path
) -> None:
    lab = Lab(running, tmp_path, partitions=2, window=WINDOW)
    stop = asyncio.Event()
    with lab.worker() as worker:
        sending = asyncio.create_task(
            send_again(lab, [(0, lab), (0, lab), (1, b"old device")], stop, seconds=0.5)
        )
        await first_finals(lab, 2)
        stop.set()
        await sending
        # The last window closes, too, and nothing is said to be waited for once that is stored.
        await lab.check_exact()
        source = "/api/collections/trips/status"
        await eventually(
            lambda: [p["wait"] for p in worker.get(source)["partitions"]] == [None] * 2
        )
        assert worker.get(source)["partitions"][1]["rejected"].keys() == {"undecodable"}
        assert worker.metrics("ldpstream_wait_seconds") == 0


async def test_windows_that_wait_say_so_everywhere(running: Broker, tmp_path: Path) -> None:
    """With `idle` off a silent partition holds windows open: a worker is ready all the same."""
    lab = Lab(running, tmp_path, partitions=2, window='grace = "0s", idle = "off"')
    stop = asyncio.Event()
    with lab.worker() as worker:
        sending = asyncio.create_task(send_again(lab, [(0, lab)], stop, seconds=0.2))
        waits = "ldpstream_wait_seconds"
        await eventually(lambda: worker.metrics(waits, partition="1") > 1, what="a wait")
        stop.set()
        await sending

        def waited_for() -> list[bool]:
            return ["wait for partition 1" in one for one in worker.get("/readyz")["waits"]]

        # Of the other one the broker may not have stored yet that it has closed the window.
        await eventually(lambda: waited_for() == [True], what="a wait for nothing else")
        assert worker.metrics(waits, partition="0") == 0
        assert worker.get("/readyz")["ready"] is True
        result = await asyncio.to_thread(invoke, "status", worker.url)
        assert "windows wait for partition 1" in result.stdout
        assert "idle is off" in result.stdout


async def test_accept_is_removed_once_the_last_window_of_the_old_spec_is_published(
    running: Broker, tmp_path: Path
) -> None:
    """What docs/how-to/change-spec.md says to wait for: no open window.

    The new spec's reports go on meanwhile.
    """
    old = Lab(running, tmp_path, partitions=2, window=WINDOW)
    new = old.changed("new.toml", ACCEPTING)
    stop, upgraded = asyncio.Event(), asyncio.Event()
    with old.worker() as worker:
        # Devices go on reporting by the old spec until they are upgraded, too.
        leaving = asyncio.create_task(send_again(old, [(0, old), (1, old)], upgraded, seconds=0.3))
        await eventually(lambda: worker.metrics("ldpstream_reports_total", result="counted") >= 2)
        assert await asyncio.to_thread(worker.terminate) == 0
    with new.worker() as worker:
        sending = asyncio.create_task(send_again(new, [(0, new), (1, new)], stop, seconds=0.3))
        name = "ldpstream_accepted_open_windows"
        await eventually(lambda: worker.metrics(name) == open_windows(worker, old) > 0)
        upgraded.set()
        await leaving
        await eventually(lambda: worker.metrics(name) == open_windows(worker, old) == 0)
        assert await asyncio.to_thread(worker.terminate) == 0
    text = new.file.read_text()
    new.file.write_text(text.replace('accept = ["ldpstream.toml"]', ""))
    new.reload()
    with new.worker() as worker:
        stop.set()
        await sending
        await old.check_exact()
        await new.check_exact()
        assert worker.terminate() == 0


def open_windows(worker: Worker, lab: Lab) -> int:
    fingerprint = lab.collection.spec.fingerprint.hex()
    status = worker.get(f"/api/collections/trips/status?fingerprint={fingerprint}")
    return int(status["open_windows"])
