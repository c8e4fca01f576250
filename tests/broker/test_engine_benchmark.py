"""The parts of `python -m benchmarks.engine` run, on little; nothing here asserts a speed."""

from pathlib import Path

import pytest
from benchmarks.engine import latency, show, speed
from benchmarks.engine.cost import Cost, best
from benchmarks.engine.getmany import GETMANY, bare_consumer
from benchmarks.engine.tables import Report
from benchmarks.engine.targets import Target, targets
from benchmarks.engine.topic import PARTITIONS, fill

from tests.brokers import broker
from tests.lab import Lab


def test_missed_and_met_targets_are_distinguished() -> None:
    def cost(reader: str, size: int, cpu_seconds: float) -> Cost:
        return Cost(reader, size, 1_000_000, cpu_seconds, 1.0)

    costs = [
        cost(GETMANY, 1, 1.0),
        cost(speed.WORKER, 1, 1.25),
        cost(speed.FAUST, 1, 60.0),
        cost(speed.QUIX, 1, 12.0),
        cost(speed.WORKER, 1_000, 0.25),
    ]
    judged = {target.what: target for target in targets(costs, (1, 1_000))}

    assert judged["frames of 1,000: worker, reports/s of a core"].reached == 4e6
    assert not judged["frames of 1,000: worker, reports/s of a core"].met
    assert judged["singles: worker / getmany"].reached == pytest.approx(0.8)
    assert judged["singles: worker / getmany"].met
    assert judged["singles: worker / Faust table"].reached == pytest.approx(48)
    assert not judged["singles: worker / Quix tumbling count"].met
    # What was not measured is missed.
    unmeasured = judged["frames of 1,000: worker / Faust table"]
    assert (unmeasured.reached, unmeasured.least, unmeasured.met) == (None, 20.0, False)
    assert best([costs[0], costs[2]]) is costs[0]
    assert show.targets(list(judged.values())).row_count == len(judged) == 6
    assert [target.what for target in targets(costs, (10,))] == []


def test_tables_are_written_between_the_comments_of_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- engine: targets -->\nold\n<!-- /engine -->\nafter\n")
    report = Report(page, ("targets",))
    for reached in (0.4, 0.7):
        report.show("targets", show.targets([Target("singles", reached, 0.6)]))
    assert page.read_text() == (
        "before\n<!-- engine: targets -->\n\nWhat was asked for, within this run:\n\n"
        "| what | reached | asked for | met |\n| --- | ---: | ---: | ---: |\n"
        "| singles | 0.70 | 0.60 | yes |\n\n<!-- /engine -->\nafter\n"
    )
    with pytest.raises(ValueError, match="expected <!-- engine: speed -->"):
        Report(page, ("targets", "speed"))


def test_messages_are_published_in_the_order_of_their_acknowledgement() -> None:
    waiting = latency.Waiting()
    waiting.acknowledged(1)
    waiting.acknowledged(2)
    waiting.published(1)
    assert len(waiting.took) == 1
    waiting.published(3)
    waiting.acknowledged(3)
    assert len(waiting.took) == 3
    assert waiting.took[2] == 0.0


@pytest.mark.broker
async def test_a_topic_is_filled_and_a_worker_publishes(tmp_path: Path) -> None:
    with broker("embedded") as running:
        lab = Lab(running, tmp_path, partitions=PARTITIONS)
        await fill(lab, 500, 10)
        records = await lab.records(lab.collection.topics.source)
        assert len(records) == 500
        assert all(record.key == record.value[-1:] for record in records)
        bare = bare_consumer(running, lab.collection.topics.source, 500, size=10)
        assert bare.cpu_seconds > 0

        empty = Lab(running, tmp_path, partitions=1)
        took = await latency.provisional(empty, size=2, every=0.05, seconds=0.5)
        assert took
        assert min(took) >= 0
