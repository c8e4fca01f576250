"""What the day takes for true among the reasons that workers give."""

import pytest

from tests.crash.day.counts import Finals
from tests.crash.day.reasons import Facts, Told, check_delays, check_told
from tests.crash.day.setting import Span
from tests.stream.hourly import SECOND_MS

AT = 1_800_000_000.0
PRINT = "0123456789abcdef"
END = "2027-01-15T07:59:50Z"
"""Ten seconds before `AT`."""
FACTS = Facts(
    # A report every quarter of a second until 20 s before.
    reported={("trips", PRINT, 1): [AT - 100 + i / 4 for i in range(320)]},
    moves=[Span(AT - 300, AT - 200)],
    held=[Span(AT - 500, AT - 400)],
    added=[Span(AT - 700, AT - 600, frozenset({"trips"}))],
)
ADDED = "trips: topic t now has 6 partitions, ... no window closes, until all workers are restarted"


def told(text: str, *, at: float = AT, ours: set[int] | None = None) -> Told:
    owned = {"trips": frozenset(ours) if ours is not None else None}
    return Told.parse(text, at=at, url="http://one", owned=owned, prints={"trips": PRINT})


def wait(reason: str, *, partition: int = 1) -> str:
    return (
        f"trips: windows up to {END} wait for partition {partition} for 3 s longer than usual: "
        + (reason)
    )


def test_a_wait_is_read() -> None:
    one = told(wait("another worker owns it, whose status says why"), ours={1})
    assert (one.name, one.fingerprint, one.partition, one.end) == ("trips", PRINT, 1, AT - 10)
    assert (one.reason, one.owned) == ("another worker owns it, whose status says why", True)
    accepted = told("trips (fedcba9876543210): the worker is starting")
    assert (accepted.fingerprint, accepted.partition) == ("fedcba9876543210", None)


@pytest.mark.parametrize(
    ("reason", "ours"),
    [
        ("another worker owns it, whose status says why", {0, 2}),
        ("all partitions have closed them, but its owner", {1, 2}),
        ("this worker has not loaded it yet", {1}),
        ("another worker owns it, whose status says why", None),
        ("its last report, counted 20 s ago, is dated before their end and grace", {1}),
        ("it was loaded 15 s ago, and no report has come since", {1}),
        ("read to its end, it is idle in 2 s", {1}),
        ("12 of its messages are unread", {1}),
    ],
)
def test_true_reasons_are_let_be(reason: str, ours: set[int] | None) -> None:
    place = 0 if reason.startswith("all") else 1
    assert check_told([told(wait(reason, partition=place), ours=ours)], FACTS) == []


@pytest.mark.parametrize(
    ("text", "ours", "why"),
    [
        (wait("another worker owns it, whose status"), {1}, "this worker owns it"),
        (wait("all partitions have closed them, but"), {0}, "this worker owns partition 0"),
        (wait("this worker has not loaded it yet"), {0}, "another worker owns it"),
        (wait("it waits for later reports: idle is off"), {1}, "idle was on"),
        (wait("its last report, counted 0 s ago, is dated"), {1}, "it came 20.2 s ago"),
        (wait("its last report, counted 90 s ago, is dated"), {1}, "it came 20.2 s ago"),
        (wait("it was loaded 60 s ago, and no report"), {1}, "one came 20.2 s ago"),
        (wait("the broker has not confirmed"), {1}, "the broker was there"),
        (wait("the moon is full for 3 s"), {1}, "nothing of this kind is known"),
        (f"{ADDED} with 6", {1}, "no partitions were added"),
        ("trips: partition 5 was added, and waits for", {1}, "no partitions were added"),
        ("trips: the worker is starting", {1}, "nothing of this kind had happened"),
        ("the broker does not answer", {1}, "nothing of this kind had happened"),
    ],
)
def test_untrue_reasons_are_found(text: str, ours: set[int], why: str) -> None:
    (problem,) = check_told([told(text, ours=ours)], FACTS)
    assert f"in vain: {why}" in problem


def test_what_is_dated_after_the_windows_grace_does_not_hold_them_open() -> None:
    facts = Facts({("trips", PRINT, 1): [AT]}, [], [], [])
    (problem,) = check_told([told(wait("its last report, counted 0 s ago, is dated"))], facts)
    assert "dated after their end and grace" in problem


def test_reports_keep_a_partition_from_being_idle() -> None:
    text = wait("read to its end, it is idle in 1 s")
    for seconds, held in ((7, True), (3, False)):
        facts = Facts({("trips", PRINT, 1): [AT - seconds]}, [], [], [])
        assert (check_told([told(text)], facts) == []) is held


def test_reasons_are_true_at_their_time() -> None:
    for text, at in [
        ("trips: the worker is starting", AT - 250),
        (f"{ADDED} with 6", AT - 650),
        (wait("it waits for later reports: idle is off"), AT - 450),
    ]:
        assert check_told([told(text, at=at)], FACTS) == []
        assert len(check_told([told(text, at=at)], Facts(FACTS.reported, [], [], []))) == 1


def test_what_passes_by_itself_has_to_pass() -> None:
    text = wait("12 of its messages are unread")
    series = [told(text, at=AT + seconds, ours={1}) for seconds in range(12)]
    (problem,) = check_told(series, FACTS)
    assert problem.endswith("for more than 8 s")
    assert check_told(series[:6] + series[9:], FACTS) == []


def test_a_final_after_its_idle_time_needs_a_reason() -> None:
    end_ms = round(AT - 10) * SECOND_MS
    finals: Finals = {("trips", PRINT, end_ms - 10 * SECOND_MS, end_ms): (AT + 4, 7)}
    problems, delayed = check_delays(finals, [], [])
    assert delayed == 1
    assert "and nobody said why" in problems[0]
    assert check_delays(finals, [told(wait("12 of its messages are unread"))], []) == ([], 1)
    assert check_delays(finals, [], [Span(AT - 5, AT - 4)]) == ([], 0)
    early: Finals = {key: (AT + 2, n) for key, (_, n) in finals.items()}
    assert check_delays(early, [], []) == ([], 0)
