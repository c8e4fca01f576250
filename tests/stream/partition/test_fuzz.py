"""20,000 messages (200,000 in `make soak`) malformed in every field, for every mechanism.

Each has the outcomes that `tests.fuzz.expected` expects, which is written from docs/wire.md alone.
"""

import random

import numpy as np
import pytest

from ldpstream.agents.state.context import Context
from ldpstream.agents.state.flushes import COPY_BYTES, Copy
from ldpstream.agents.state.replica import Replica
from ldpstream.agents.state.view import totals
from ldpstream.agents.state.windows import WindowSpec
from ldpstream.mechanisms.interface.mechanism import Mechanism
from ldpstream.mechanisms.wire.spec import CollectionSpec
from tests.conformance.instances import INSTANCES
from tests.exact.enumeration import accumulated
from tests.fuzz.collection import fuzzer_of, rules_of
from tests.fuzz.expected import Expected
from tests.soak import chosen
from tests.stream.harness import loaded, make_context, make_spec, settle

MESSAGES = chosen(25_000, soak=250_000)
EACH = -(-MESSAGES // len(INSTANCES))
NOW_MS = 1_270_000_000_000
WINDOW = WindowSpec(size_ms=40, hop_ms=20, grace_ms=180, future_ms=10)


def spec_of(mechanism: Mechanism) -> CollectionSpec:
    return CollectionSpec(
        name="fuzzed",
        topic="fuzzed",
        domain=make_spec().domain,
        mechanism=mechanism,
        precision_ms=2,
    )


@pytest.mark.soak
@pytest.mark.parametrize("name", INSTANCES)
def test_every_message_has_the_fates_that_the_wire_format_says(name: str):
    rng = random.Random(name)
    spec = spec_of(INSTANCES[name])
    context = make_context(WINDOW, spec=spec, chunk=64)
    expected = Expected(rules_of(spec, WINDOW))
    replica, part = loaded(context)
    offset = log = 0
    outcomes, copied = [], []
    values = list(fuzzer_of(spec, rng, now_ms=NOW_MS).messages(EACH, big=1))
    while offset < EACH:
        batch = list(enumerate(values[offset : offset + rng.choice((1, 2, 50, 200))], offset))
        outcomes += [expected.message(value, NOW_MS) for _, value in batch]
        part.ingest(batch, now_ms=NOW_MS)
        offset += len(batch)
        assert part.work.clock == expected.clock
        flush = settle(replica, part, start=log)
        log += len(flush.cells) + 1
        copied += flush.copies
    head = replica.head
    found = {"counted": head.n, "late": head.late, **head.rejected}
    assert found == {"counted": 0, "late": 0, **expected.outcomes}
    assert expected.outcomes["counted"] > EACH
    assert set(expected.outcomes) == {
        *("counted", "late", "undecodable", "fingerprint", "future", "precision", "time"),
        *(["range"] if has_impossible(spec.mechanism) else []),
    }
    check_copies(copied, outcomes)
    check_counts(context, replica, expected)


def has_impossible(mechanism: Mechanism) -> bool:
    """Return whether some bytes of the right length are not a report."""
    return not mechanism.decode(np.full((1, mechanism.report_bytes), 255, dtype=np.uint8))[1].all()


def check_copies(copies: list[Copy], outcomes: list) -> None:
    """Check that each message is copied once for each of its reasons, up to the limit."""
    found: dict[int, set[str]] = {}
    for copy in copies:
        headers = dict(copy.headers)
        found.setdefault(int(headers["offset"]), set()).add(headers["reason"].decode())
        assert len(copy.value) <= COPY_BYTES
    wanted = {at: set(outcome) - {"counted"} for at, outcome in enumerate(outcomes)}
    assert found == {at: reasons for at, reasons in wanted.items() if reasons}


def check_counts(context: Context, replica: Replica, expected: Expected) -> None:
    """Check that the statistic of every pane is that of the reports expected in it."""
    mechanism, pane_ms = context.spec.mechanism, context.window.pane_ms
    panes: dict[int, list[bytes]] = {}
    for pane, report in expected.counted.elements():
        panes.setdefault(pane, []).append(report)
    held = [pane for pane in replica.all_panes() if replica.totals(pane).n]
    assert held == sorted(panes)
    for pane, reports in panes.items():
        table = np.frombuffer(b"".join(reports), dtype=np.uint8).reshape(len(reports), -1)
        statistic = accumulated(mechanism, mechanism.decode(table)[0])
        got = totals(context, [replica], pane * pane_ms, (pane + 1) * pane_ms)
        assert got.n == len(reports)
        np.testing.assert_array_equal(got.statistic, statistic)
