"""Every impossible key of a collection is refused by its path and by what was expected."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ldpstream.agents.config import ConfigError, read_config
from ldpstream.agents.config.tables import CollectionTable, PublishTable, WindowTable
from tests.property.configs import read, refusal, with_keys

BERLIN = {"timezone": "Europe/Berlin"}
DAYS = BERLIN | {"size": "1d"}
REFUSED: list[tuple[dict[str, Any], str]] = [
    # Wrong values of one key
    ({"epsilon": 0}, "epsilon: expected a finite number above 0, got 0"),
    ({"domain": {"size": 10**12}}, "domain.size: expected 2..10000000 values"),
    ({"domain": {"colour": 1}}, "domain.colour: expected one of the keys"),
    ({"mechanism": "laplace"}, "mechanism: expected one of binary, block-hadamard, groups"),
    ({"topic": "a b"}, 'topic: expected letters, digits, dots, dashes and underscores'),
    ({"topic": "__a"}, "topic: expected letters"),
    ({"topic": "t" * 201}, "topic: expected at most 200 characters"),
    ({"partitions": 0}, "partitions: expected at least 1, got 0"),
    ({"partitions": "4"}, 'partitions: expected a whole number, got "4"'),
    ({"partitions": True}, "partitions: expected a whole number, got true"),
    ({"retention": "7 days"}, 'retention: expected a duration such as "250ms", "5m" or "7d"'),
    ({"retention": 7}, "retention: expected a duration"),
    ({"retention": "0s"}, 'retention: expected a duration above 0, got "0s"'),
    ({"retention": "999999999d"}, "retention: expected at most 36500d"),
    ({"precision": "-1s"}, "precision: expected a duration"),
    ({"minimum": -1}, "minimum: expected at least 0, got -1"),
    ({"confidence": 1.0}, "confidence: expected a number above 0 and below 1, got 1.0"),
    ({"confidence": float("nan")}, "confidence: expected a number above 0 and below 1, got nan"),
    ({"estimand": "all"}, 'estimand: expected one of "respondents", "population" or "active"'),
    ({"method": "wilson"}, 'method: expected one of "padded", "exact", "normal"'),
    ({"sharpest": 0}, "sharpest: expected"),
    ({"sharpest": 0.5}, "sharpest: expected"),
    ({"rejected": "drop"}, 'rejected: expected one of "copy" or "count", got "drop"'),
    ({"window": "1h"}, 'window: expected a table, got "1h"'),
    ({"window.idle": "on"}, 'window.idle: expected a duration such as "30s", or "off", got "on"'),
    ({"window.idle": "0s"}, "window.idle: expected a duration above 0"),
    ({"publish.top": 1001}, "publish.top: expected at most 1000, got 1001"),
    ({"publish.top": "20"}, 'publish.top: expected a whole number, got "20"'),
    (
        {"publish.top": "all"},
        "publish.top: expected a whole number up to 1,000, such as the number of values",
    ),
    ({"publish.every": "0s"}, "publish.every: expected a duration above 0"),
    ({"publish.quantiles": [1.5]}, "publish.quantiles[0]: expected a number above 0 and below 1"),
    ({"publish.quantiles": [0.0]}, "publish.quantiles[0]: expected a number above 0 and below 1"),
    (
        {"publish.quantiles": [0.5, 1.0]},
        "publish.quantiles[1]: expected a number above 0 and below 1",
    ),
    ({"publish.quantiles": [0.5, 0.5]}, "publish.quantiles: expected each number once"),
    ({"publish.ranges": {"r": 3}}, "publish.ranges.r: expected a list, got 3"),
    ({"publish.ranges": {"r": [5, 2]}}, "publish.ranges.r: expected low <= high, got 5..2"),
    ({"publish.ranges": {"r": [0, 8]}}, "publish.ranges.r: expected whole numbers in 0..7"),
    ({"publish.ranges": {"a b": [0, 9]}}, 'publish.ranges."a b": expected whole numbers'),
    ({"publish.ranges": {"r": [[0, 1], [2, 3]]}}, "publish.ranges.r: expected [low, high]"),
    # Unknown keys
    ({"epslion": 1}, "epslion: unknown key (did you mean epsilon?); expected one of mech"),
    ({"window.length": "1h"}, "window.length: unknown key; expected one of size, hop, timezone"),
    ({"publish.linear": [1]}, "publish.linear: expected a table, got [1]"),
    ({"publish.linear": {"a b": 3}}, 'publish.linear."a b": expected a list of numbers'),
    ({"publish.linear": {"w": [1, "x"]}}, "publish.linear.w: expected a list of numbers, or a tab"),
    ({"publish.linear": {"w": [True]}}, "publish.linear.w: expected a list of numbers, or a table"),
    ({"publish.linear": {"w": [1]}}, "publish.linear.w: expected 8 weights, one for each value,"),
    ({"publish.linear": {"w": {"8": 1}}}, "publish.linear.w: expected labels of the domain, got"),
    ({"publish.linear": {"w": [10**400] * 8}}, "publish.linear.w: expected finite weights of at"),
    ({"publish.ranges": {"r": [0, 10**400]}}, "publish.ranges.r: expected [low, high], of num"),
    ({"publish.tops": 3}, "publish.tops: unknown key (did you mean top?); expected one of"),
    # Contradictions
    ({"window.hop": "2h"}, "window.hop: expected at most size (1h), got 2h"),
    ({"window.hop": "1ms"}, "window.hop: expected size and hop to divide a window into at most"),
    ({"window.grace": "30s", "window.future": "31s"},
     "window.future: expected at most grace (30s), got 31s"),
    ({"window.grace": "0s", "window.future": "1s"},
     "window.future: expected at most grace (0ms), got 1s"),
    ({"window.witnesses": 0}, "window.witnesses: expected"),
    ({"window.retention": "30m"}, "window.retention: expected at least size (1h), got 30m"),
    ({"window.size": "30d"}, "window.retention: expected at least size (30d), got 7d, the def"),
    ({"window": {"hop": "2h"}}, "window.hop: expected at most size (1h, the default: write size"),
    ({"window.size": "500ms"}, "precision: expected at most a pane (500ms), got 1s, the d"),
    ({"window.size": "1500ms"}, "precision: expected a divisor of a pane (1500ms), got 1s, t"),
    ({"precision": "2h"}, "precision: expected at most a pane (1h), got 2h"),
    ({"precision": "7s"}, "precision: expected a divisor of a pane (1h), got 7s"),
    # Days of time zones, and weeks
    ({"window.timezone": "Berlin"}, "window.timezone: expected a time zone such as"),
    ({"window": BERLIN}, "window.size: expected whole days, such as \"1d\" or \"7d\", because of"),
    ({"window": BERLIN | {"size": "90m"}}, "window.size: expected whole days"),
    ({"window": BERLIN | {"size": "1d", "hop": "1h"}}, "window.hop: expected whole days"),
    ({"window": {"week_start": "monday"}}, "window.week_start: expected none, or windows that st"),
    ({"window": {"week_start": "Monday"}}, "window.week_start: expected one of \"monday\", "),
    ({"window": DAYS, "precision": "2h"}, "precision: expected a divisor of 1h, with which the"),
    ({"window": DAYS, "one_report": True}, "window.timezone: expected none with one_report"),
    ({"window": DAYS, "hold": 3}, "window.timezone: expected none with hold"),
    ({"window": DAYS, "spread": {"reports": 1, "horizon": "7d"}}, "window.timezone: expected non"),
    ({"window": {"size": "1w", "week_start": "sunday"}, "hold": 3}, "window.week_start: expected"),
    # Keys of other mechanisms, and files to accept
    ({"accept": "old.toml"}, 'accept: expected a list, got "old.toml"'),
    ({"accept": [1]}, "accept[0]: expected a string, got 1"),
    ({"accept": ["absent.toml"]}, "accept[0]: absent.toml: cannot read it: No such file"),
]  # fmt: skip


@pytest.mark.parametrize(("keys", "problem"), REFUSED, ids=[p[:50] for _, p in REFUSED])
def test_impossible_collections_are_refused_by_key_and_expectation(
    keys: dict[str, Any], problem: str
):
    message = refusal({"collection": {"checkins": with_keys(keys)}})
    assert message.startswith(f"collection.checkins.{problem}")


AGES = {"attributes": {"age": {"size": 3}, "mode": {"size": 4}}}
IDENTITY = {"mechanism": "matrix", "strategy": "identity"}
MISSPELT: dict[str, dict[str, Any]] = {
    "epsilon": {"epsilom": 1},
    "domain.bins": {"domain": {"interval": [0, 5], "bin": 10}},
    "domain.pairs": {"domain": AGES | {"pair": [["age", "mode"]]}},
    "domain.attributes.age.size": {"domain": {"attributes": {"age": {"sise": 3}, "mode": {}}}},
    "domain.words.rounds": {"domain": {"words": {"bits": 16, "round": 2}}},
    "hold.windows": {"hold": {"window": 2}},
    "policy.metric": IDENTITY | {"policy": {"metrik": "l1", "scale": 1}},
    "policy.scale": IDENTITY | {"policy": {"metric": "l1", "scales": 1}},
    "policy.prior": IDENTITY | {"policy": {"prio": [1]}},
    "strategy.file": {"mechanism": "matrix", "strategy": {"fil": "x"}},
    "window.grace": {"window.grase": "1m"},
    "spread.reports": {"spread": {"report": 1, "reports": 1, "horizon": "7d"}},
    "publish.every": {"publish.evry": "1m"},
    "publish.attributes.age": {"domain": AGES, "publish.attributes": {"agee": {"top": 1}}},
    "publish.attributes.age.top": {"domain": AGES, "publish.attributes": {"age": {"tops": 1}}},
    "value_labels.age": {"domain": AGES, "value_labels": {"agee": {"1": "x"}}},
}


@pytest.mark.parametrize("path", MISSPELT)
def test_a_misspelt_key_of_any_table_is_answered_with_the_key_that_was_meant(path: str):
    message = refusal({"collection": {"checkins": with_keys(MISSPELT[path])}})
    table, _, meant = path.rpartition(".")
    assert message.startswith(f"collection.checkins.{table}")
    assert f"(did you mean {meant}?)" in message


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
KEYS = (
    *CollectionTable.model_fields,
    *(f"window.{key}" for key in WindowTable.model_fields),
    *(f"publish.{key}" for key in PublishTable.model_fields),
    "domain.blocks",
)


@settings(deadline=None)
@example(key="accept", value="\x85")
@given(key=st.sampled_from(KEYS), value=json_values)
def test_any_value_of_a_key_is_accepted_or_refused_by_its_path(key: str, value: Any):
    try:
        read(with_keys({key: value}))
    except ConfigError as refused:
        each, message = refused.each(), str(refused)
    else:
        return
    assert message.splitlines() == [str(one) for one in each]
    assert len({one.path for one in each}) == len(each)
    start = f"collection.checkins.{key.split('.')[0]}"
    assert all(one.path.startswith(start) for one in each)


def test_all_mistakes_are_reported_at_once():
    tables = {
        "worker": {"key": "k.pem"},
        "gateway": {"key": "k.pem", "http": "6066"},
        "kafka": {"bootstrap": "a:b:c"},
        "collection": {
            "a": {"mechanism": "laplace", "window": {"size": "1h", "hop": "2h"}},
            "b": with_keys({"epsilon": 0, "partitions": 0}),
            "c": with_keys({"publish.ranges": {"r": 3}}),
            "d": with_keys({}),
            "e": with_keys({"topic": "d.reports", "accept": ["absent.toml"]}),
            "f": with_keys({"epsilom": 2, "window.grace": "x"}),
            "g": with_keys({"topic": "d.reports"}),
        },
    }
    with pytest.raises(ConfigError) as caught:
        read_config(tables, base=Path(), environment={})
    refused = caught.value.in_file("all.toml")
    lines = str(refused).splitlines()
    assert [line.split(": ")[0] for line in lines] == ["all.toml"] * len(lines)
    assert {line.split(": ")[1] for line in lines} == {
        "collection.a.domain",
        "collection.a.mechanism",
        "collection.a.window.hop",
        "collection.b.epsilon",
        "collection.b.partitions",
        "collection.c.publish.ranges.r",
        "collection.e.accept[0]",
        "collection.f.epsilom",
        "collection.f.window.grace",
        "collection.g.topic",
        "gateway.http",
        "kafka.bootstrap",
        "worker.certificate",
    }
    assert len(lines) == 13


def test_a_mistake_in_eight_collections_is_reported_for_each():
    tables = {"collection": {f"c{i}": with_keys({"window.hop": "2h"}) for i in range(8)}}
    with pytest.raises(ConfigError) as caught:
        read_config(tables, base=Path(), environment={})
    each = caught.value.each()
    assert [one.path for one in each] == [f"collection.c{i}.window.hop" for i in range(8)]
