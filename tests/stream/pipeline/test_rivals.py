"""Two workers of one id with different windows: each reports the other, and the difference."""

from dataclasses import replace

from ldpstream.agents.engine.loading import RECENT_SECONDS, ConflictingWorkers
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.replica import Replica
from tests.property.configs import MINIMAL, read
from tests.stream.harness import HOUR_MS, Cluster, make_context, make_spec
from tests.stream.hourly import HOURLY, NOW_MS, at

CONTEXT = make_context(HOURLY)
HALVES = make_context(replace(HOURLY, size_ms=HOUR_MS // 2, hop_ms=HOUR_MS // 2))
OTHER_SPEC = make_context(HALVES.window, spec=make_spec(name="other"))


def heads(context: Context, number: int) -> list[tuple[bytes, bytes | None]]:
    """Return what an owner writes to its changelog in `number` flushes."""
    cluster = Cluster(context, now_ms=NOW_MS)
    for _ in range(number):
        cluster.produce(0, at(0))
        cluster.ingest(0)
        cluster.flush(0)
    return [(key, value) for _, key, value in cluster.log[0]]


def feed(replica: Replica, at_offset: int, records: list[tuple[bytes, bytes | None]]) -> int:
    end = at_offset + len(records)
    numbered = [(offset, *record) for offset, record in enumerate(records, start=at_offset)]
    replica.read(numbered, position=end, end=end)
    return end


def test_a_rival_that_writes_is_reported_and_an_abandoned_one_is_not():
    config = read(MINIMAL).collections["checkins"]
    replica, rivals = Replica(CONTEXT, 0), ConflictingWorkers(config)
    before, since = heads(HALVES, 1), heads(HALVES, 3)
    end = feed(replica, 0, before + heads(CONTEXT, 1))
    rivals.update([replica], 0.0)
    assert rivals.problem == ""
    end = feed(replica, end, heads(OTHER_SPEC, 2))
    rivals.update([replica], 1.0)
    assert rivals.problem == ""
    end = feed(replica, end, since[len(before) :])
    rivals.update([replica], 2.0)
    assert "window.size = 30m, here 1h and window.hop = 30m, here 1h" in rivals.problem
    rivals.update([replica], 3.0 + RECENT_SECONDS)
    assert rivals.problem == ""
