"""A page of every mistake, made, with its message."""

import asyncio
import os
import re
import shlex
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import numpy as np
from aiohttp.test_utils import TestServer
from click.testing import CliRunner

import ldpstream as ldp
from ldpstream.agents.cli.main import main
from ldpstream.agents.web import build_http
from ldpstream.mechanisms.wire.frame import encode_frame
from tests.mistakes.cases import FILE, MISTAKES, OTHERS, URL, Mistake
from tests.stream.querying import five_minutes

PATIENCE_SECONDS: Final = 120.0
_NO_BROKER: Final = "no broker answers at "
_LONG_LIST: Final = re.compile(r"(expected one of (?:[\w-]+, ){3})(?:[\w-]+, ){2,}(?!got\b)[\w-]+")
_HELP: Final = re.compile(r" \(see ldpstream(?: \w+)? --help\)")
_HEADING: Final = """# Mistakes and their messages

`python -m tests.mistakes` makes each of these mistakes and prints this page. A command says what is
wrong and exits with 1 or 2. It has written nothing and counted nothing. What is said of arguments
and options ends with `(see ldpstream COMMAND --help)`, which is left out here.
"""
_USUAL: Final = {
    "Configuration": "certify modes",
    "Values": "privatize modes",
    "Times": "privatize --times modes",
    "Queries to a worker": f"query {URL}",
}
"""The command of most mistakes of a section; of a longer one the rows show the rest."""
_SENT_HEADING: Final = """
## Messages that arrive in the topic

A worker counts good reports, whatever arrives with them. Late and rejected reports are counted by
reason in `/metrics`, `ldpstream status` and on the page, and copied to `TOPIC.late` or
`TOPIC.rejected`. After 100 reports that are counted:

| what arrives | late | rejected |
| --- | --- | --- |"""


def page() -> str:
    """Make every mistake and return the page."""
    lines = [_HEADING.rstrip()]
    with _folder(), _worker() as url:
        for heading, mistakes in MISTAKES.items():
            usual = _USUAL.get(heading, "")
            about_file = heading == "Configuration"
            left_out = (
                f"; of the former `{FILE}: ` at the beginning is left out" if about_file else ""
            )
            lines += ["", f"## {heading}", ""]
            if usual:
                said_after = "with what a row adds, or after the command that it names"
                lines += [f"After `ldpstream {usual}` {said_after}{left_out}:", ""]
            lines += ["| mistake | message |", "| --- | --- |"]
            # Mistakes with the same message share a row.
            rows: dict[str, dict[str, list[str]]] = {}
            for mistake in mistakes:
                rest, said = mistake.command.removeprefix(usual).strip(), _make(mistake, url)
                if about_file and not rest:
                    said = said.removeprefix(f"{FILE}: ").replace(f"<br>{FILE}: ", "<br>")
                rows.setdefault(said, {}).setdefault(rest, []).append(mistake.what)
            for said, made in rows.items():
                whats = (
                    "; ".join(what) + (f": `{rest}`" if rest else "") for rest, what in made.items()
                )
                lines.append(f"| {'; '.join(whats)} | {said} |")
    lines.append(_SENT_HEADING)
    sent: dict[str, list[str]] = {}
    for what, numbers in _sent():
        sent.setdefault(numbers, []).append(what)
    lines += [f"| {'; '.join(what)} | {numbers} |" for numbers, what in sent.items()]
    return "\n".join(lines) + "\n"


@contextmanager
def _worker() -> Iterator[str]:
    """Serve a worker's HTTP from a thread, as commands run in the main one."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    server = TestServer(build_http(five_minutes()))
    try:
        asyncio.run_coroutine_threadsafe(server.start_server(loop=loop), loop).result()
        yield str(server.make_url("")).rstrip("/")
    finally:
        asyncio.run_coroutine_threadsafe(server.close(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextmanager
def _folder() -> Iterator[None]:
    """Work in an empty folder."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def _write(mistake: Mistake) -> None:
    for name, text in {**OTHERS, **mistake.files}.items():
        Path(name).write_text(text)


def _make(mistake: Mistake, url: str) -> str:
    _write(mistake)
    arguments = [part.replace(URL, url) for part in shlex.split(mistake.command)]
    begun = time.monotonic()
    run = CliRunner().invoke(main, arguments, input=mistake.stdin, prog_name="ldpstream")
    assert time.monotonic() - begun < PATIENCE_SECONDS, mistake.what
    said = run.stderr.strip().replace(url, URL)
    # `check` also prints what it looks at.
    printed = "" if mistake.command.startswith("check") else run.stdout
    if run.exit_code not in (1, 2) or not said or printed or "Traceback" in said:
        said = f"EXIT {run.exit_code}, {run.exception!r}, {run.stdout} {said}"
    parts = _LONG_LIST.sub(r"\1...", _HELP.sub("", said)).replace("|", "\\|").splitlines()
    # There is no broker either, which only matters where nothing else is wrong.
    others = [part for part in parts if not part.startswith(_NO_BROKER)]
    return "<br>".join(others or parts)


def _sent() -> Iterator[tuple[str, str]]:
    """Yield the counts of 100 reports and a bad message, for each kind of bad message."""
    modes = ldp.define_collection(
        "modes", mechanism="block-hadamard", epsilon=1.0, domain={"values": ["bus", "car"]}
    )
    other = ldp.define_collection(
        "modes", mechanism="block-hadamard", epsilon=2.0, domain={"values": ["bus", "car"]}
    )

    start = "2026-11-21T10:00:00Z"
    for what in (
        "a record without a value (a tombstone)",
        "text instead of a frame",
        "a frame that ends in the middle",
        "a report of another configuration",
        "a report of a closed window",
        "a report dated tomorrow",
        "a report that no value can have",
    ):
        driver = ldp.Driver(modes, start=start)
        driver.send(["bus"] * 100)
        good = driver.collection.spec.frame(["bus"], times_ms=[driver.now_ms])
        spec = driver.collection.spec
        if what.endswith("(a tombstone)"):
            driver.produce(None)
        elif what.startswith("text"):
            driver.produce(b"bus")
        elif what.endswith("middle"):
            driver.produce(good[:-1])
        elif what.endswith("configuration"):
            driver.produce(other.spec.frame(["bus"], times_ms=[driver.now_ms]))
        elif "closed" in what:
            driver.advance("2h")
            driver.produce(good)
        elif what.endswith("tomorrow"):
            driver.produce(spec.frame(["bus"], times_ms=[driver.now_ms + 86_400_000]))
        else:
            times = np.array([driver.now_ms])
            bad = np.full((1, spec.mechanism.report_bytes), 255, dtype=np.uint8)
            driver.produce(encode_frame(spec.fingerprint, times, bad))
        assert driver.counted == 100, what
        reasons = ", ".join(f"{reason} {n}" for reason, n in driver.rejected.items()) or "0"
        yield what, f"{driver.late} | {reasons}"
