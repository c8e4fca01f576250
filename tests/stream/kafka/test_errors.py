"""Errors of a broker by their names, and what they mean for an operator."""

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import (
    GroupAuthorizationFailedError,
    InconsistentGroupProtocolError,
    InvalidGroupIdError,
    InvalidSessionTimeoutError,
    KafkaError,
    MemberIdRequired,
    NodeNotReadyError,
    RequestTimedOutError,
    UnknownError,
    for_code,
)

from ldpstream.agents.broker.health import GroupWatch
from ldpstream.agents.broker.patches.error_names import ERROR_NAMES, name_errors
from ldpstream.agents.broker.patches.refused_members import refused_member
from ldpstream.agents.broker.patches.static_membership import DisplacedError
from ldpstream.agents.broker.refusals import (
    Complaints,
    describe_error,
    describe_refused_member,
    describe_refused_write,
    error_code,
    error_name,
)
from ldpstream.agents.config import KafkaConfig
from ldpstream.agents.engine.patches.worker_app import WorkerApp
from tests.brokers import skip_without_kafka
from tests.java import java

KAFKA = KafkaConfig(bootstrap="b:1", options={})
FENCED, FULL, INVALID = 82, 81, 87

_PRINT_NAMES = """
import org.apache.kafka.common.protocol.Errors;
public class PrintNames {
  public static void main(String[] words) {
    for (Errors one : Errors.values()) System.out.println(one.code() + " " + one.name());
  }
}
"""


@pytest.fixture(autouse=True)
def _named() -> None:
    name_errors()


@pytest.mark.broker
def test_names_are_those_of_kafka(tmp_path: Path) -> None:
    skip_without_kafka()
    program = tmp_path / "PrintNames.java"
    program.write_text(_PRINT_NAMES)
    printed = subprocess.run([*java("-Xmx64m"), str(program)], capture_output=True, text=True)
    assert printed.returncode == 0, printed.stderr
    theirs = {int(code): name for code, name in map(str.split, printed.stdout.splitlines())}
    assert {code: name for code, name in theirs.items() if code > 72} == ERROR_NAMES


def test_an_error_that_the_client_does_not_know_is_handled_as_before_under_its_name() -> None:
    error = for_code(INVALID)("topic trips")
    assert isinstance(error, UnknownError)
    assert not error.retriable
    assert str(error) == "[Error 87] INVALID_RECORD: topic trips"
    assert for_code(79) is MemberIdRequired  # What the client knows stays its own.
    assert for_code(999) is UnknownError
    assert error_name(999) == "error 999"


def test_a_quoted_error_has_its_code() -> None:
    # What aiokafka's coordinator raises.
    quoted = (KafkaError(repr(for_code(FULL)())), KafkaError(repr(InvalidGroupIdError())))
    beat = KafkaError(f"Unexpected exception in heartbeat task: {for_code(FENCED)()!r}")
    assert [error_code(one) for one in (*quoted, beat)] == [FULL, 24, FENCED]
    assert error_code(RequestTimedOutError()) == 7
    assert error_code(KafkaError("a connection broke")) is None
    assert error_code(ValueError()) is None


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (InvalidSessionTimeoutError(), "(INVALID_SESSION_TIMEOUT), so it gets no partitions: set"),
        (InvalidSessionTimeoutError(), "kafka.session_timeout_ms, 6000 ms here"),
        (InconsistentGroupProtocolError(), "(INCONSISTENT_GROUP_PROTOCOL)"),
        (InvalidGroupIdError(), "worker.id"),
        (GroupAuthorizationFailedError("w"), "permission to read the group"),
        (FULL, "(GROUP_MAX_SIZE_REACHED)"),
        (FENCED, "worker.instance"),
        (112, "(UNSUPPORTED_ASSIGNOR)"),
        (KafkaError("Unexpected error during coordination"), "cannot join the group w: "),
    ],
)
def test_a_refused_member_is_told_with_the_setting(error: KafkaError | int, said: str) -> None:
    if isinstance(error, int):
        error = KafkaError(repr(for_code(error)()))
    assert said in describe_refused_member(error, "w", session_ms=6_000)


def test_sentences_name_the_error_or_the_setting() -> None:
    for code, said in {
        73: "deletes no topics (TOPIC_DELETION_DISABLED): set delete.topic.enable = true",
        87: "refuses a record (INVALID_RECORD), as it does one without a key",
        -1: "failed without saying why",
        100: "failed: [Error 100] UNKNOWN_TOPIC_ID",
        29: "does not permit it: [Error 29] TopicAuthorizationFailedError",
    }.items():
        assert f"the broker at b:1 {said}" in describe_error(for_code(code)(), KAFKA)
    assert describe_error(NodeNotReadyError("1"), KAFKA).startswith("no broker answers at b:1")
    assert describe_error(KafkaError("odd"), KAFKA).endswith("b:1 failed: KafkaError: odd")
    assert describe_refused_write(KafkaError("odd")) == "topic : KafkaError: odd"


def test_a_complaint_is_a_problem_until_it_is_over(caplog: pytest.LogCaptureFixture) -> None:
    complaints, error = Complaints("collection trips"), for_code(INVALID)()
    error.add_note("trips.late")
    for partition in range(3):
        complaints.report_error(partition, error, f"partition {partition}")
    complaints.report_error(0, RequestTimedOutError(), "partition 0")
    (problem,) = complaints.problems
    assert problem.startswith("partition 0 cannot be written and is tried again: the broker ")
    assert "for topic trips.late (INVALID_RECORD)" in problem
    assert caplog.messages == [f"collection trips: {problem}"]
    complaints.clear(0)
    assert complaints.problems[0].startswith("partition 1 ")
    complaints.clear(1)
    complaints.clear(2)
    assert complaints.problems == []


class Coordinator:
    """A coordinator as aiokafka's that rests after an error until that is raised."""

    coordinator_id: int | None = 1

    def __init__(self, error: KafkaError | None) -> None:
        self._pending_exception = error

    def check_errors(self) -> None:
        error, self._pending_exception = self._pending_exception, None
        if error is not None:
            raise error


def test_a_refused_member_tries_again_unless_another_process_has_its_place() -> None:
    full, fenced = (KafkaError(repr(for_code(code)())) for code in (FULL, FENCED))
    resting: Any = Coordinator(full)
    assert [refused_member(resting), refused_member(resting)] == [full, None]
    displaced: Any = Coordinator(fenced)
    assert [refused_member(displaced), refused_member(displaced)] == [fenced, fenced]
    ended: Any = SimpleNamespace(
        _pending_exception=None, check_errors=Coordinator(full).check_errors
    )
    assert refused_member(ended) is full
    lost: Any = Coordinator(None)
    lost.coordinator_id = None
    assert error_name(error_code(refused_member(lost))) == "COORDINATOR_NOT_AVAILABLE"


def test_a_member_is_refused_until_the_broker_has_been_silent_twice(
    caplog: pytest.LogCaptureFixture,
) -> None:
    watch = GroupWatch()
    with caplog.at_level("INFO", logger="ldpstream"):
        for problem in ("", "full", "", "full", "other", "other", ""):
            watch.update(problem)
        assert watch.problem == "other"
        watch.update("")
    assert watch.problem == ""
    last = "the broker no longer refuses this worker in its group"
    assert caplog.messages == ["full", "other", last]


def test_a_displaced_worker_says_which_instance_whichever_error_comes_first() -> None:
    conf = SimpleNamespace(id="town", consumer_group_instance_id="worker-1")
    ours, theirs = DisplacedError("town", "worker-1"), KafkaError(repr(for_code(FENCED)()))
    for reason in (ours, theirs):
        app: Any = SimpleNamespace(crash_reason=reason, conf=conf)
        assert WorkerApp.describe_crash(app) == (
            "another process has joined the group town as the instance worker-1: each worker "
            "needs one of its own"
        )
    app = SimpleNamespace(crash_reason=KafkaError("no news"), conf=conf)
    assert WorkerApp.describe_crash(app) == "KafkaError('no news')"
