"""The README's commands and programs run as they are; only addresses are replaced."""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
import pytest

from tests import missing, pages
from tests.brokers import wait_until
from tests.pages import Place
from tests.ports import free_ports
from tests.processes import PATIENCE_SECONDS

_BROKER: Final = "127.0.0.1:9092"
_WORKER: Final = "http://127.0.0.1:6066"
_OTHER: Final = "https://stats.example.org"
_REPLAYED: Final = "2026-11-20T10:00:00Z"
"""The start of the window that the page replays reports into."""
_MODES: Final = """
[collection.modes]
mechanism = "block-hadamard"
epsilon = 1.0
domain = { values = ["bus", "train", "walk", "car"] }
window = { size = "1d" }
minimum = 1
"""


def blocks(heading: str, language: str) -> list[str]:
    """Return the code of one language below a heading of README."""
    place = f"README.md#{heading}"
    found = pages.blocks("README.md")
    return [one.code for one in found if (one.place, one.language) == (place, language)]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    broker, http = free_ports(2)
    http_address = _WORKER.removeprefix("http://")
    here = f"127.0.0.1:{http}"
    addresses = {_BROKER: f"127.0.0.1:{broker}", http_address: here, _OTHER: f"http://{here}"}
    return Place.made(tmp_path, addresses)


def test_values_to_estimates_without_a_broker(place: Place):
    (code,) = blocks("Without a broker: values to estimates", "sh")
    said = place.shell(code)
    (shown,) = [one for one in pages.blocks("README.md") if one.code == code]
    assert pages.agrees(said, shown), said
    certificates = json.loads(said.partition("\n}\n")[0] + "}")
    document = json.loads(
        place.shell("ldpstream estimate --json -c modes.toml modes reports.jsonl")
    )
    assert certificates["pass"] is True
    assert (document["n"], len(document["distribution"])) == (1000, 4)
    # Seven standard errors: by Hoeffding's bound exceeded with probability below 1e-9.
    truth = {"bus": 0.6, "train": 0.0, "walk": 0.0, "car": 0.4}
    for entry in document["distribution"]:
        assert abs(entry["share"] - truth[entry["value"]]) < 7 * entry["se"]


@pytest.mark.broker
def test_the_live_collection_the_device_and_the_app(place: Place):
    with devbroker(place):
        with worker(place):
            _send_and_query(place)
            _check_as_the_page_of_changes_says(place)
            (device,) = blocks("A device, in three lines", "python")
            place.run(sys.executable, "-c", place.here(device))
            _wait_for_live(place, 1, "the device's report")
        _test_app(place)


@pytest.mark.broker
def test_the_page_of_http_asks_the_worker(place: Place):
    missing.skip_without("curl")
    with devbroker(place), worker(place):
        _send_and_query(place)
        place.shell("yes bus | head -300 | ldpstream send modes")
        wait_until(
            # Another window begins with every day.
            lambda: sum(one["n"] for one in _windows(place, "modes")) == 300,
            "the reports of modes",
        )
        (place.folder / "read-token").write_text("of another worker: this one wants none")
        answers, files = (
            one.code for one in pages.blocks("docs/reference/http.md") if one.language == "sh"
        )
        assert '"name":"fare"' in place.shell(answers)
        place.shell(files)
    assert "[60, 110]" in (place.folder / "checkins.csv").read_text()
    kept = pq.read_table(place.folder / "finals.parquet").to_pylist()
    assert {row["n"] for row in kept} == {3000}


@contextmanager
def devbroker(place: Place) -> Iterator[None]:
    """Run the broker of the README, with the file that it writes and a second collection."""
    broker, (init, check, _) = _live_blocks()[0], _commands(_live_blocks()[1])
    assert _commands(broker) == ["ldpstream devbroker"]
    port = place.addresses[_BROKER].rpartition(":")[2]
    with place.running("sh", "-c", f"exec {_commands(broker)[0]} --port {port}") as running:
        assert _line(running) == f"ready {place.addresses[_BROKER]}"
        place.shell(init)
        place.exchange("ldpstream.toml")
        with (place.folder / "ldpstream.toml").open("a") as file:
            file.write(_MODES)
        assert place.shell(check).endswith("ok\n")
        yield


@contextmanager
def worker(place: Place) -> Iterator[None]:
    """Run the worker of the README."""
    *_, command = _commands(_live_blocks()[1])
    with place.running("sh", "-c", f"exec {command}") as running:
        assert _line(running) == f"ready {place.here(_WORKER)}"
        yield


def _live_blocks() -> list[str]:
    """Return the code of the broker, the worker's terminal, the devices and the analyst."""
    return blocks("With a broker: a live collection", "sh")


def _send_and_query(place: Place) -> None:
    *_, devices, analyst = _live_blocks()
    send, query, options = devices.partition("ldpstream query")
    assert f"yes {_REPLAYED}," in send
    shown = place.shell(send)
    wait_until(lambda: [one["final"] for one in _windows(place)] == [True], "the final window")
    assert _windows(place)[0]["n"] == 3000
    shown += place.shell(query + options)
    (expected,) = [one for one in pages.blocks("README.md") if one.code == devices]
    assert pages.agrees(shown, expected), shown
    place.shell(analyst)


def _check_as_the_page_of_changes_says(place: Place) -> None:
    page, heading = "docs/how-to/change-spec.md", "Another spec under the same topic"
    new, check = (one for one in pages.blocks(page) if one.heading == heading)
    kafka = place.here(f'[kafka]\nbootstrap = "{_BROKER}"\nenable_idempotence = false\n')
    (place.folder / "new.toml").write_text(kafka + new.code)
    # As its comment says: epsilon 1 and three values, and nothing to accept.
    old = new.code.replace("epsilon = 2.0", "epsilon = 1.0").replace(', "tram"', "")
    (place.folder / "old.toml").write_text(kafka + old.replace("accept =", "# accept ="))
    said = place.shell(check.code)
    assert pages.agrees(said, check), said


def _test_app(place: Place) -> None:
    (code,) = blocks("Inside your own Faust app", "python")
    (own,) = free_ports(1)
    (place.folder / "shop.py").write_text(code)
    start = f"exec faust -A shop worker --web-port {own} --loglevel error"
    with place.running("sh", "-c", start):
        wait_until(lambda: _ready(place), "the app")
        place.run("sh", "-c", "echo 60,110 | ldpstream send checkins")
        _wait_for_live(place, 2, "the app's report")


def _commands(code: str) -> list[str]:
    return [line.partition("#")[0].strip() for line in code.splitlines()]


def _line(process: "subprocess.Popen[bytes]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().decode().strip()


def _wait_for_live(place: Place, n: int, what: str) -> None:
    """Wait until the windows that the replay is not in have `n` reports.

    The replay's window may be there or not: reports dated now make time pass in all partitions,
    and it expires once its date, which the page fixes, is longer ago than `retention`. Of the
    others there may be two, since another window begins with every hour.
    """

    def live() -> int:
        windows = _windows(place)
        return sum(one["n"] for one in windows if one["window"]["start"] != _REPLAYED)

    try:
        wait_until(lambda: live() == n, what)
    except TimeoutError as error:
        error.add_note(f"windows: {_windows(place)}")
        error.add_note(f"status: {_get(place, 'checkins/status')}")
        raise


def _windows(place: Place, name: str = "checkins") -> list[dict[str, Any]]:
    windows: list[dict[str, Any]] = _get(place, f"{name}/windows")["windows"]
    return windows


def _get(place: Place, path: str) -> Any:
    url = f"{place.here(_WORKER)}/api/collections/{path}"
    with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS) as answer:
        return json.load(answer)


def _ready(place: Place) -> bool:
    try:
        with urllib.request.urlopen(
            f"{place.here(_WORKER)}/readyz", timeout=PATIENCE_SECONDS
        ) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
