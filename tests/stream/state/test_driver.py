"""`ldp.Driver`: the state machine of a worker, driven by a test, without a broker."""

import random
import time
from pathlib import Path

import pytest

import ldpstream as ldp
from ldpstream.agents.document.build import build_document
from ldpstream.agents.state.context import WindowTotals
from ldpstream.mechanisms.base.times import format_time
from ldpstream.mechanisms.wire.frame import decode_frame
from tests.seeded import SeededEntropy
from tests.soak import seeds

MODES = {
    "mechanism": "block-hadamard",
    "epsilon": 1.0,
    "domain": {"values": ["bus", "train", "walk", "car"]},
    "minimum": 1,
    "partitions": 3,
    "window": {"size": "1h"},
}
TEN, ELEVEN = "2026-11-21T10:00:00Z", "2026-11-21T11:00:00Z"


def driver(**keys: object) -> ldp.Driver:
    return ldp.Driver(ldp.define_collection("modes", **(MODES | keys)), start=TEN)


def test_a_window_is_final_once_its_time_is_over() -> None:
    made = driver()
    made.send(["bus"] * 300 + ["car"] * 100)
    assert made.finals == []
    made.advance("59m")
    assert made.finals == []
    made.advance("3m")
    (final,) = made.finals
    assert (final.window.start, final.window.end, final.n) == (TEN, ELEVEN, 400)
    assert final.final
    assert made.counted == 400
    assert made.now == "2026-11-21T11:02:00Z"
    assert final.distribution[0].value == "bus"


def test_a_final_is_what_the_statistic_of_its_reports_gives() -> None:
    made = driver(partitions=1)
    spec = made.collection.spec
    frame = spec.frame(
        ["bus"] * 40 + ["walk"], entropy=SeededEntropy(3), times_ms=[made.now_ms] * 41
    )
    made.produce(frame)
    statistic = spec.mechanism.empty()
    decoded = decode_frame(frame, fingerprint=spec.fingerprint, report_bytes=spec.report_bytes)
    reports, valid = spec.mechanism.decode(decoded.payload)
    assert valid.all()
    spec.mechanism.accumulate(statistic, reports)
    made.advance("2h")
    span = made.now_ms - 7_200_000, made.now_ms - 3_600_000
    totals = WindowTotals(*span, statistic, 41, late=0, rejected=0)
    (final,) = made.finals
    assert final == build_document(made.collection, totals, window=span, final=True)


def test_the_same_seed_gives_the_same_numbers_and_another_seed_does_not() -> None:
    finals = []
    for seed in (1, 1, 2):
        made = ldp.Driver(ldp.define_collection("modes", **MODES), start=TEN, seed=seed)
        made.send(["bus"] * 200)
        made.advance("2h")
        finals += made.finals
    assert finals[0] == finals[1] != finals[2]


def test_late_and_bad_messages_are_counted_and_copied() -> None:
    made = driver()
    made.send(["bus"])
    made.advance("2h")
    made.send(["bus", "car"], times=[TEN, "2026-11-21T12:00:00Z"], partition=0)
    made.produce(b"no frame", partition=1)
    made.produce(None, partition=2)
    made.send(["bus"], times=["2026-11-21T20:00:00Z"])
    assert (made.counted, made.late) == (2, 1)
    assert made.rejected == {"undecodable": 2, "future": 1}
    kinds = [(copy.kind, dict(copy.headers)["reason"]) for copy in made.copies]
    assert sorted(kinds) == [
        ("late", b"late"),
        ("rejected", b"future"),
        ("rejected", b"undecodable"),
        ("rejected", b"undecodable"),
    ]


def test_a_kill_loses_nothing_and_counts_nothing_twice() -> None:
    whole, killed = driver(), driver()
    for one, restarts in ((whole, False), (killed, True)):
        for _ in range(5):
            one.send(["bus"] * 50)
            one.advance("20m")
            if restarts:
                one.restart()
        one.advance("2h")
    assert [final.n for final in whole.finals] == [150, 100]
    assert killed.finals == whole.finals


def test_without_idle_time_a_replay_is_closed_by_hand() -> None:
    made = driver(window={"size": "1h", "idle": "off"})
    made.send(["bus"] * 10)
    made.advance("30d")
    assert made.finals == []
    made.close(ELEVEN)
    assert [final.n for final in made.finals] == [10]


def test_open_windows_can_be_listed_and_estimated() -> None:
    made = driver(domain={"size": 4})
    made.send([0, 1, 1])
    made.advance("1h")
    made.send([3])
    assert [totals.n for totals in made.windows.values()] == [3, 1]
    starts = [format_time(start) for start in made.windows]
    assert repr(made.windows) == (
        f"<WindowedTable of reports by window: {starts[0]}: 3, {starts[1]}: 1>"
    )
    assert made.estimate().n == 1
    first = made.estimate(ldp.EstimateRequest(ranges=["0..1"]), start=TEN)
    assert (first.n, first.ranges[0].name) == (3, "0..1")
    with pytest.raises(LookupError, match="start: expected a window with reports"):
        made.estimate(start="2026-11-20T10:00:00Z")


def test_the_driver_withholds_below_the_minimum() -> None:
    made = driver(minimum=100)
    made.send(["bus"] * 99)
    made.advance("2h")
    (final,) = made.finals
    assert (final.withheld, final.n, final.distribution) == (True, 99, [])


@pytest.mark.soak
@pytest.mark.parametrize("seed", seeds(3, soak=100))
def test_the_length_of_steps_changes_nothing(seed: int) -> None:
    """One long step gives the same as many short ones."""
    draw = random.Random(seed)
    hopping = {"size": "20m", "hop": "10m", "idle": "40s", "grace": "1m", "future": "1m"}
    long, short = (driver(window=hopping, partitions=2) for _ in range(2))
    for _ in range(12):
        values, partition = ["bus"] * draw.randint(1, 5), draw.randrange(2)
        late = draw.choice([0, 0, 0, 90_000, 1_500_000])
        pause_ms = draw.choice([1_000, 30_000, 45_000, 600_000, 2_000_000])
        for made in (long, short):
            times = [max(made.now_ms - late, 0)] * len(values)
            made.send(values, times=times, partition=partition)
        long.advance(pause_ms)
        for left_ms in range(pause_ms, 0, -7_000):
            short.advance(min(7_000, left_ms))
    for made in (long, short):
        made.advance("2h")
    assert long.counted + long.late == short.counted + short.late
    assert [(f.window, f.n) for f in long.finals] == [(f.window, f.n) for f in short.finals]
    assert sum(f.n for f in long.finals) == 2 * long.counted


def test_a_window_takes_milliseconds() -> None:
    """The limit is generous: a window takes some 15 ms on an idle machine."""
    made = driver(partitions=1)
    made.send(["bus"])
    made.advance("2h")
    begun = time.process_time()
    for _ in range(10):
        made.send(["bus"] * 100)
        made.advance("1h")
    assert (time.process_time() - begun) / 10 < 0.5
    assert len(made.finals) >= 10


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda made: made.advance(-1), "duration: expected at least 0, got -1"),
        (lambda made: made.advance("soon"), "a duration"),
        (lambda made: made.produce(b"", partition=3), r"partition: expected a number in 0\.\.2"),
        (lambda made: made.send(["plane"]), "value at position 0: expected one of the 4 labels"),
        (lambda made: made.send([]), "values: expected at least one"),
    ],
)
def test_impossible_calls_are_refused(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(driver())


def test_an_invalid_start_is_refused() -> None:
    with pytest.raises(ValueError, match=r"start: expected an RFC 3339 time .*, got 'soon'"):
        ldp.Driver(ldp.define_collection("modes", **MODES), start="soon")


def test_collections_that_accept_other_specs_are_refused(tmp_path: Path) -> None:
    old = '[collection.modes]\nmechanism = "binary"\nepsilon = [1.0, 1.0]\ndomain = { size = 2 }\n'
    (tmp_path / "old.toml").write_text(old)
    new = old.replace("[1.0, 1.0]", "[2.0, 2.0]") + 'accept = ["old.toml"]\n'
    (tmp_path / "new.toml").write_text(new)
    with pytest.raises(ValueError, match=r"modes\.accept: expected none"):
        ldp.Driver(ldp.load_collection(tmp_path / "new.toml", "modes"))
