"""docs/tutorials/first-collection.md as a reader runs it, and pages that go on from its end.

Only addresses are replaced. One broker and one worker serve docs/reference/http.md and
docs/how-to/change-spec.md, too; then the app of docs/how-to/own-faust-app.md takes over.
"""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
import pytest

from tests import missing, pages
from tests.brokers import wait_until
from tests.pages import Block, Place
from tests.ports import free_ports
from tests.processes import PATIENCE_SECONDS

PAGE: Final = "docs/tutorials/first-collection.md"
_BROKER: Final = "127.0.0.1:9092"
_WORKER: Final = "http://127.0.0.1:6066"
_OTHER: Final = "https://stats.example.org"
_TRUTH: Final = {"bus": 0.5, "train": 0.2, "walk": 0.1, "car": 0.2}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    broker, http = free_ports(2)
    http_address = _WORKER.removeprefix("http://")
    here = f"127.0.0.1:{http}"
    addresses = {_BROKER: f"127.0.0.1:{broker}", http_address: here, _OTHER: f"http://{here}"}
    return Place.made(tmp_path, addresses)


@pytest.mark.broker
def test_the_tutorial_and_the_pages_that_go_on_from_it(place: Place):
    missing.skip_without("curl")
    with ExitStack() as running:
        listed = pages.blocks(PAGE)
        first = next(n for n, one in enumerate(listed) if "devbroker" in one.code)
        for block in listed[:first]:
            _run(place, block)
        with (place.folder / "ldpstream.toml").open("a") as file:
            # Where the page's worker has its default.
            file.write(f'\n[worker]\nhttp = "{place.here("127.0.0.1:6066")}"\n')
        _check_estimate(place)
        running.enter_context(_broker(place, listed[first].code))
        check, start = _commands(listed[first + 1].code)
        assert place.shell(check).endswith("ok\n")
        with _started(place, start, f"ready {place.here(_WORKER)}"):
            *others, device = listed[first + 2 :]
            for block in others:
                _run(place, block)
            assert [(one["final"], one["n"]) for one in _windows(place)] == [(True, 3000)]
            _ask_as_the_page_of_http_says(place)
            _check_as_the_page_of_changes_says(place)
            _run(place, device)
            _wait_for_open(place, 1, "the device's report")
        _run_app(place)


def _run(place: Place, block: Block) -> None:
    """Run a block, again and again until it prints what the page shows.

    What a worker answers follows what devices send in a moment. Sending twice would count twice.
    """
    if block.language == "python":
        place.run(sys.executable, "-c", place.here(block.code))
        return
    # Variables of one block are known in the next, as in a terminal.
    code = f"[ ! -e hour ] || . ./hour\n{block.code}\nset | grep '^hour=' > hour || true"
    said = place.shell(code)
    if "ldpstream send" in block.code:
        wait_until(lambda: _windows(place) != [], "the window of what was sent")
    elif block.output:

        def agrees() -> bool:
            nonlocal said
            if not pages.agrees(said, block):
                said = place.shell(code)
            return pages.agrees(said, block)

        try:
            wait_until(agrees, f"what {block.place} shows")
        except TimeoutError as error:
            error.add_note(said)
            raise
    assert not block.output or pages.agrees(said, block), said


def _check_estimate(place: Place) -> None:
    document = json.loads(place.shell("ldpstream estimate --json modes reports.jsonl --top all"))
    assert document["n"] == 3000
    # Seven standard errors: exceeded with probability 2e-11, by exact tails of binomials.
    for entry in document["distribution"]:
        assert abs(entry["share"] - _TRUTH[entry["value"]]) < 7 * entry["se"]


@contextmanager
def _broker(place: Place, code: str) -> Iterator[None]:
    place.exchange("ldpstream.toml")
    (command,) = _commands(code)
    port = place.addresses[_BROKER].rpartition(":")[2]
    with _started(place, f"{command} --port {port}", f"ready {place.addresses[_BROKER]}"):
        yield


@contextmanager
def _started(place: Place, command: str, line: str) -> Iterator[None]:
    with place.running("sh", "-c", f"exec {command}") as running:
        assert _line(running) == line
        yield


def _ask_as_the_page_of_http_says(place: Place) -> None:
    (place.folder / "read-token").write_text("of another worker: this one wants none")
    answers, files = (
        one.code for one in pages.blocks("docs/reference/http.md") if one.language == "sh"
    )
    assert '"name":"fare"' in place.shell(answers)
    place.shell(files)
    assert ",bus," in (place.folder / "modes.csv").read_text()
    kept = pq.read_table(place.folder / "finals.parquet").to_pylist()
    assert {row["n"] for row in kept} == {3000}


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


def _run_app(place: Place) -> None:
    code = [
        one.code for one in pages.blocks("docs/how-to/own-faust-app.md") if one.language == "python"
    ]
    (own,) = free_ports(1)
    (place.folder / "shop.py").write_text("\n\n".join(code))
    start = f"exec faust -A shop worker --web-port {own} --loglevel error"
    with place.running("sh", "-c", start):
        wait_until(lambda: _ready(place), "the app")
        place.run("sh", "-c", "echo bus | ldpstream send modes")
        _wait_for_open(place, 2, "the app's report")


def _commands(code: str) -> list[str]:
    return [line.partition("#")[0].strip() for line in code.splitlines()]


def _line(process: "subprocess.Popen[bytes]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().decode().strip()


def _wait_for_open(place: Place, n: int, what: str) -> None:
    """Wait until the open windows have `n` reports: two, where an hour begins meanwhile."""
    try:
        wait_until(lambda: sum(one["n"] for one in _windows(place) if not one["final"]) == n, what)
    except TimeoutError as error:
        error.add_note(f"windows: {_windows(place)}")
        error.add_note(f"status: {_get(place, 'modes/status')}")
        raise


def _windows(place: Place) -> list[dict[str, Any]]:
    windows: list[dict[str, Any]] = _get(place, "modes/windows")["windows"]
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
