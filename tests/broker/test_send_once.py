"""`send --id`: an input is counted once, with the bytes first drawn, whatever kills its sender."""

import asyncio
import random
import sqlite3
import subprocess
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from ldpstream.agents.cli.once import sending
from tests.broker.conftest import on_kafka, on_one_broker
from tests.lab import Lab
from tests.stream.cli import begin, invoke, refused

pytestmark = pytest.mark.broker

N, BATCH, KILLS = 40_000, 20, 4


@pytest.fixture
def values(tmp_path: Path) -> Path:
    path = tmp_path / "values.csv"
    path.write_text("".join(f"{i % 12}\n" for i in range(N)))
    return path


def send(lab: Lab, values: Path, *, name: str = "day-1") -> list[str]:
    return ["send", "-c", str(lab.file), "--id", name, "--batch", str(BATCH), "trips", str(values)]


def journal_of(lab: Lab) -> Path:
    return lab.file.parent / "ldpstream-sent" / "trips" / "day-1.journal"


def drawn(journal: Path) -> list[bytes]:
    """Return the frames that a journal still holds; nobody may have it open."""
    with closing(sqlite3.connect(journal)) as database, database:
        tables = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
        rows = database.execute("SELECT bytes FROM frame") if tables != (0,) else []
        return [row[0] for row in rows]


def in_topic(lab: Lab) -> list[bytes | None]:
    topic = lab.collection.topics.source
    return [record.value for record in asyncio.run(lab.records(topic, committed_only=True))]


def kill_after_a_change(process: "subprocess.Popen[bytes]", journal: Path, seconds: float) -> None:
    """Kill a sender this long after its journal has changed, unless it has ended before."""
    before = _changed_ns(journal)
    while process.poll() is None:
        if _changed_ns(journal) != before:
            time.sleep(seconds)
            process.kill()
            return
        time.sleep(0.001)


def _changed_ns(file: Path) -> int:
    return file.stat().st_mtime_ns if file.exists() else 0


@on_kafka
def test_a_file_is_counted_once_however_often_its_sender_is_killed(lab: Lab, values: Path):
    rng, journal, seen = random.Random(5), journal_of(lab), set[bytes]()
    for _ in range(KILLS):
        with begin(*send(lab, values)) as process:
            kill_after_a_change(process, journal, rng.uniform(0, 0.1))
        seen |= set(drawn(journal))
    result = invoke(*send(lab, values))
    assert result.exit_code == 0, result.stderr
    said = f"{N:,} reports in {N // BATCH:,} messages acknowledged"
    assert said in result.stdout
    sent = Counter(in_topic(lab))
    assert set(sent.values()) == {1}
    assert len(sent) == N // BATCH
    # All that killed processes had drawn is in the topic: nothing was drawn again.
    assert seen
    assert seen <= set(sent)
    assert drawn(journal) == []
    again = invoke(*send(lab, values))
    assert (again.exit_code, again.stdout) == (0, f"day-1 has been sent: {said} before\n")
    assert len(in_topic(lab)) == N // BATCH


def change(journal: Path, assignments: str) -> None:
    with closing(sqlite3.connect(journal)) as database, database:
        database.execute(f"UPDATE input SET {assignments}")


@pytest.fixture
def few(lab: Lab, tmp_path: Path) -> Path:
    """Ten values, sent as day-1 in one message."""
    path = tmp_path / "few.csv"
    path.write_text("1\n" * 10)
    assert invoke(*send(lab, path)).exit_code == 0
    return path


@on_kafka
def test_another_file_or_spec_under_the_same_name_is_refused(lab: Lab, few: Path):
    other = few.with_name("other.csv")
    other.write_text("1\n" * 9)
    said = refused(invoke(*send(lab, other)))
    expected = "--id: day-1 was begun with a different input"
    assert said == f"{expected}: choose another name for this one"
    assert invoke(*send(lab, other, name="day-2")).exit_code == 0
    assert len(in_topic(lab)) == 2
    lab.file.write_text(lab.file.read_text().replace("epsilon = 1.0", "epsilon = 2.0"))
    said = refused(invoke(*send(lab, few)))
    assert said.endswith("finish it with the configuration that it was begun with")


@on_kafka
def test_a_refused_line_leaves_nothing_sent_and_the_name_free(lab: Lab, tmp_path: Path):
    values = tmp_path / "values.csv"
    values.write_text("1\n" * 150_000 + "12\n")
    result = invoke(*send(lab, values))
    assert result.exit_code == 2
    said = (
        f"{values}: line 150001: expected an integer in 0..11: --clamp moves numbers to the "
        "nearest end of the domain"
    )
    assert result.stderr.splitlines()[-1] == said
    values.write_text("1\n" * 10)
    assert invoke(*send(lab, values)).exit_code == 0
    assert len(in_topic(lab)) == 1


@on_kafka
def test_a_crash_between_the_commit_and_the_journal_sends_nothing_twice(lab: Lab, few: Path):
    change(journal_of(lab), "sent = 0")
    result = invoke(*send(lab, few))
    said = "10 reports in 1 message acknowledged"
    assert (result.exit_code, result.stdout) == (0, f"{said}, 10 of them before\n")
    assert invoke(*send(lab, few)).stdout == f"day-1 has been sent: {said} before\n"
    assert len(in_topic(lab)) == 1


@on_kafka
def test_a_journal_that_was_lost_or_put_back_sends_nothing_twice(lab: Lab, few: Path):
    journal = journal_of(lab)
    change(journal, "sent = 0, begun = 0")
    said = refused(invoke(*send(lab, few)), code=1)
    assert said == f"{journal} is an older copy of the journal of day-1: expected the newest"
    journal.unlink()
    said = refused(invoke(*send(lab, few)))
    assert said.startswith(f"--id: reports were sent as day-1 from a journal other than {journal}")
    assert len(in_topic(lab)) == 1


@on_kafka
def test_what_the_broker_no_longer_knows_is_not_sent_again(
    lab: Lab, few: Path, monkeypatch: pytest.MonkeyPatch
):
    async def forgotten(*_: object) -> None:
        return None

    monkeypatch.setattr(sending, "committed", forgotten)
    change(journal_of(lab), "sent = 0, begun_ms = 1")
    said = refused(invoke(*send(lab, few)), code=1)
    assert said.startswith("--id: the broker no longer knows how much of day-1 it has: between ")
    assert len(in_topic(lab)) == 1


@on_kafka
def test_a_topic_created_again_is_another_one(lab: Lab, few: Path):
    change(journal_of(lab), "sent = 0, begun = 0, topic_id = 'another'")
    assert "since day-1 was begun; choose another name" in refused(invoke(*send(lab, few)))


@on_one_broker
def test_a_broker_without_transactions_is_refused_before_anything_is_drawn(lab: Lab, values: Path):
    said = refused(invoke(*send(lab, values)), code=1)
    assert said.endswith("leave --id out, or use Apache Kafka")
    assert drawn(journal_of(lab)) == []
    # The same for a broker that says so only when asked to begin.
    text = lab.file.read_text().replace("enable_idempotence = false", "")
    lab.file.write_text(text)
    said = invoke(*send(lab, values)).stderr
    assert said.splitlines()[-1].endswith("leave --id out, or use Apache Kafka")
