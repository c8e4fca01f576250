"""The rule of one report a device and window: its configuration, tokens and frames."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from ldpstream.agents.broker.topics import TopicError
from ldpstream.agents.broker.topics import _check_source as check_source
from ldpstream.agents.config import load_config, read_config
from ldpstream.mechanisms import CollectionSpec, SpecError
from ldpstream.mechanisms.ledger import Ledger, LedgerError

TABLE = {"mechanism": "randomized-response", "epsilon": 0.5, "domain": {"values": ["a", "b", "c"]}}
HOUR_MS, DAY_MS = 3_600_000, 86_400_000
NOON_MS = 1_795_262_400_000
SECRET = bytes(range(32))


def make(**keys: object) -> CollectionSpec:
    return CollectionSpec.from_mapping("modes", TABLE | keys, base=Path())


RULED = make(one_report=True)


def test_without_the_key_nothing_changes():
    plain = make()
    assert make(one_report=False).canonical == plain.canonical
    assert make(partitions=7, window={"size": "1d"}).canonical == plain.canonical
    assert "one_report" not in json.loads(plain.canonical)
    assert plain.report_bytes == plain.mechanism.report_bytes
    assert len(plain.disclosed()) + 1 == len(RULED.disclosed())


def test_window_and_partitions_belong_to_the_spec():
    canonical = json.loads(RULED.canonical)
    assert canonical["version"] == 2
    assert canonical["one_report"] == {"window_ms": HOUR_MS, "partitions": 4}
    others = [make(one_report=True, partitions=5), make(one_report=True, window={"size": "2h"})]
    assert len({spec.fingerprint for spec in (RULED, make(), *others)}) == 4
    same = make(one_report=True, partitions=4, window={"size": "60m", "hop": "1h", "grace": "5m"})
    assert same.fingerprint == RULED.fingerprint


@pytest.mark.parametrize(
    ("keys", "path", "expected"),
    [
        ({"one_report": 1}, "one_report", "true or false, got 1"),
        ({"one_report": True, "partitions": 0}, "partitions", "a whole number above 0, got 0"),
        (
            {"one_report": True, "window": {"size": "1d", "hop": "1h"}},
            "window.hop",
            "size, because",
        ),
        ({"one_report": True, "window": {"size": "x"}}, "window.size", "a duration above 0"),
        ({"one_report": True, "window": 3}, "window", "a table, got 3"),
    ],
)
def test_what_contradicts_the_rule_is_refused(keys: dict, path: str, expected: str):
    with pytest.raises(SpecError) as caught:
        make(**keys)
    assert caught.value.path == f"collection.modes.{path}"
    assert caught.value.expected.startswith(expected)


def test_a_token_is_of_one_device_window_and_collection():
    times_ms = NOON_MS + np.array([0, HOUR_MS - 1, HOUR_MS, -1, DAY_MS])
    first, same, *others = (bytes(token) for token in RULED.tokens(SECRET, times_ms))
    assert first == same
    another = make(one_report=True, epsilon=0.6).tokens(SECRET, times_ms[:1])
    neighbour = RULED.tokens(SECRET[::-1], times_ms[:1])
    everything = {first, *others, another.tobytes(), neighbour.tobytes()}
    assert len(everything) == 6
    # Of the cut time: a report is counted in its window.
    day = make(one_report=True, precision="1h").tokens(SECRET, times_ms)
    assert (day[0] == day[1]).all()


def test_frames_have_tokens_of_one_partition_or_none():
    reports, times_ms = np.zeros(2, int), np.full(2, NOON_MS)
    secrets = [bytes([n]) * 16 for n in range(40)]
    tokens = np.concatenate([RULED.tokens(secret, times_ms[:1]) for secret in secrets])
    assert RULED.one_report is not None
    groups = [tokens[at] for at in RULED.one_report.by_partition(tokens)]
    assert len(groups) == 4
    assert sum(map(len, groups)) == 40
    for number, group in enumerate(groups):
        frame = RULED.frame_reports(reports, times_ms=times_ms, tokens=group[:2])
        assert RULED.one_report.frame_partition(frame) == number
    mixed = np.concatenate([groups[0][:1], groups[1][:1]])
    for wrong in (None, mixed, tokens[:1], tokens[:2, :4], tokens[:2].astype(np.int64)):
        with pytest.raises(ValueError, match="token"):
            RULED.frame_reports(reports, times_ms=times_ms, tokens=wrong)
    with pytest.raises(ValueError, match="no tokens without one_report"):
        make().frame_reports(reports, times_ms=times_ms, tokens=groups[0][:2])


def test_a_frame_of_tokens_does_not_disclose_the_order_of_reports():
    spec = make(one_report=True, partitions=1)
    secrets = [bytes([n]) * 16 for n in range(9)]
    tokens = np.concatenate([spec.tokens(secret, np.array([NOON_MS])) for secret in secrets])
    times_ms, reports = np.full(9, NOON_MS), np.arange(9) % 3
    back = np.arange(9)[::-1]
    one = spec.frame_reports(reports, times_ms=times_ms, tokens=tokens)
    assert one == spec.frame_reports(reports[back], times_ms=times_ms, tokens=tokens[back])


def test_a_device_needs_its_secret_and_sends_one_report():
    assert len(RULED.frame(["a"], secret=SECRET)) == 24 + 1 + 8
    for labels, secret in ((["a"], None), (["a", "b"], SECRET), (["a"], b"short")):
        with pytest.raises(ValueError, match=r"secret|one label"):
            RULED.frame(labels, secret=secret)
    with pytest.raises(ValueError, match="only with it"):
        make().frame(["a"], secret=SECRET)
    with pytest.raises(ValueError, match="with one_report"):
        make().tokens(SECRET, np.array([0]))


def test_the_ledger_keeps_the_secret(tmp_path: Path):
    file = tmp_path / "ledger"
    plain = Ledger(file, specs=[(make(), HOUR_MS)], budget=9)
    plain.close()
    secrets = []
    for _ in range(2):
        with Ledger(file, specs=[(RULED, HOUR_MS)], budget=9) as ledger:
            secrets.append(ledger.secret)
    assert secrets[0] == secrets[1]
    assert len(secrets[0]) == 32
    with Ledger(tmp_path / "other", specs=[(RULED, HOUR_MS)], budget=9) as ledger:
        assert ledger.secret != secrets[0]
    with pytest.raises(LedgerError, match=f"expected windows of {HOUR_MS} ms, as its one_report"):
        Ledger(file, specs=[(RULED, HOUR_MS // 2)], budget=9)
    with closing(sqlite3.connect(file)) as database, database:
        assert database.execute("SELECT count(*) FROM secret").fetchone() == (1,)


def test_an_accepted_spec_keeps_its_partitions_over_the_topic_of_the_new_one(tmp_path: Path):
    body = '[collection.modes]\nmechanism = "randomized-response"\nepsilon = 0.5\n'
    body += "domain = { size = 3 }\none_report = true\n"
    (tmp_path / "old.toml").write_text(body + "partitions = 2\n")
    (tmp_path / "new.toml").write_text(body + 'partitions = 3\naccept = ["old.toml"]\n')
    own = load_config(tmp_path / "new.toml", environment={}).collections["modes"]
    (old,) = own.accept
    assert (own.partitions, old.partitions) == (3, 3)
    rules = (own.spec.one_report, old.spec.one_report)
    assert [rule and rule.partitions for rule in rules] == [3, 2]
    assert old.spec.fingerprint != own.spec.fingerprint


def test_a_topic_of_other_partitions_is_refused_by_name(tmp_path: Path):
    tables = {"collection": {"modes": TABLE, "ruled": TABLE | {"one_report": True}}}
    config = read_config(tables, base=tmp_path, environment={})
    for name, hint in (("modes", "5$"), ("ruled", r"5 \(another spec\)")):
        key = rf"collection\.{name}\.partitions"
        with pytest.raises(TopicError, match=rf"{key} is 4: set {key} = {hint}"):
            check_source(5, config.collections[name])
