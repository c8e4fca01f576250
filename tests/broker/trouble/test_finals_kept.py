"""`ldpstream finals`: the finals of a topic in order, without its other messages."""

import asyncio
import errno
import json
import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import ldpstream as ldp
from tests.broker.conftest import on_one_broker
from tests.lab import Lab
from tests.stream.cli import invoke, refused
from tests.stream.modes import MODES

pytestmark = pytest.mark.broker


@on_one_broker
def test_finals_of_a_topic_are_kept_once_and_the_last_counts(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    asked = ["finals", "-c", str(lab.file), "trips"]
    topic = lab.collection.topics.estimates
    assert refused(invoke(*asked), code=1).startswith(f"topic {topic} does not exist: start a ")
    driver = ldp.Driver(MODES, start="2026-11-21T10:00:00Z")
    for _ in range(2):
        driver.send(["bus"] * 300)
        driver.advance("65m")
    first, second = driver.finals
    provisional = second.model_copy(update={"final": False, "n": 7})
    again = first.model_copy(update={"n": 301})
    # Of another size, before the configuration changed: it begins where the first one does.
    assert first.window is not None
    shorter = first.window.model_copy(update={"end": "2026-11-21T10:30:00Z"})
    earlier = first.model_copy(update={"window": shorter, "n": 200, "size": "30m"})
    messages = [one.to_json() for one in (first, provisional, second, again, earlier)]

    async def produce() -> None:
        await lab.create(topic, partitions=1)
        async with lab.producer() as producer:
            for message in (*messages[:2], b"no document", *messages[2:]):
                await producer.send_and_wait(topic, message, partition=0)

    asyncio.run(produce())
    left_out = [
        f"trips: left out the windows of {size} that {topic} also has: --size '{size}' takes them\n"
        for size in ("1h", "30m")
    ]
    skipped = f"{topic}: offset 2: not an estimate, skipped\n"
    printed = invoke(*asked)
    assert (printed.exit_code, printed.stdout, printed.stderr) == (
        0,
        "",
        skipped + "".join(left_out),
    )
    asked += ["--size", "1h"]
    printed = invoke(*asked)
    assert (printed.exit_code, printed.stderr) == (0, skipped + left_out[1])
    assert [json.loads(line)["n"] for line in printed.stdout.splitlines()] == [300, 300, 301]
    for _ in range(2):
        kept = invoke(*asked, "--to", str(tmp_path / "f.parquet"))
        assert (kept.exit_code, kept.stdout) == (0, "")
        assert kept.stderr.endswith("2 final windows stored\n")
        rows = pq.read_table(tmp_path / "f.parquet").to_pylist()
        assert [row["n"] for row in rows if row["entry"] == 0] == [301, 300]
        assert len(rows) == len(first.distribution) + len(second.distribution)
    (tmp_path / "folder.parquet").mkdir()
    for name, why in {
        "none/f.parquet": "No such file or directory",
        "folder.parquet": "expected a file, got a folder",
        "full.parquet": "No space left on device",
    }.items():
        with monkeypatch.context() as disk:
            if name == "full.parquet":
                disk.setattr(os, "fsync", _refuse)
            stopped = invoke(*asked, "--to", str(tmp_path / name))
        *_, said = stopped.stderr.splitlines()
        assert (stopped.exit_code, stopped.stdout) == (2, "")
        assert said.startswith("--to: ")
        assert name in said
        assert why in said


def _refuse(descriptor: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
