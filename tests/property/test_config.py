"""The configuration: defaults as documented, `[kafka]`, and one clear refusal for all else."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from ldpstream.agents.cli.configuration import TEMPLATE
from ldpstream.agents.config import Config, ConfigError, load_config, read_config
from ldpstream.agents.config.client_options import ClientOptionError, settled
from ldpstream.agents.config.query.options import EstimateOptions
from ldpstream.mechanisms.base.times import parse_time
from ldpstream.mechanisms.domains.queries import Range
from ldpstream.mechanisms.registry.registry import MECHANISMS
from ldpstream.mechanisms.wire.spec import load_spec
from tests.property.configs import MINIMAL, read, refusal, with_keys

BERLIN = {"timezone": "Europe/Berlin"}
KOLKATA = {"timezone": "Asia/Kolkata", "size": "1w"}


def test_defaults_are_those_documented():
    config = read(MINIMAL)
    assert config.kafka.bootstrap == "127.0.0.1:9092"
    assert config.kafka.options == {}
    assert (config.worker.id, config.worker.http) == ("ldpstream", "127.0.0.1:6066")
    assert config.worker.data == Path("data")
    checkins = config.collections["checkins"]
    window = checkins.window
    assert (window.size_ms, window.hop_ms, window.grace_ms) == (3_600_000, 3_600_000, 60_000)
    assert (window.idle_ms, window.future_ms, window.witnesses) == (30_000, 60_000, 1)
    assert window.retention_ms == checkins.retention_ms == 7 * 86_400_000
    assert checkins.spec.precision_ms == 1_000
    assert (checkins.minimum, checkins.options.confidence) == (100, 0.95)
    assert (checkins.options.estimand, checkins.options.method) == ("respondents", "padded")
    assert checkins.rejected == "copy"
    assert checkins.topics.names() == (
        "checkins.reports",
        "checkins.reports.late",
        "checkins.reports.rejected",
        "checkins.reports.estimates",
        "checkins.reports.control",
        "ldpstream-checkins-changelog",
    )
    assert (checkins.publish_every_ms, checkins.options) == (5_000, EstimateOptions())


@pytest.mark.parametrize(
    ("written", "grace_ms", "future_ms"),
    [
        ({}, 60_000, 60_000),
        ({"size": "10s"}, 10_000, 10_000),
        ({"size": "15m", "hop": "10m", "grace": "0s"}, 0, 0),
        ({"size": "75s", "hop": "50s"}, 25_000, 25_000),
        ({"grace": "5m"}, 300_000, 300_000),
        ({"future": "10m"}, 600_000, 600_000),
        ({"grace": "5m", "future": "1s"}, 300_000, 1_000),
    ],
)
def test_the_defaults_of_grace_and_future_follow_each_other(
    written: dict[str, str], grace_ms: int, future_ms: int
):
    table = MINIMAL | {"window": {"size": "1h"} | written}
    window = read(table).collections["checkins"].window
    assert (window.grace_ms, window.future_ms) == (grace_ms, future_ms)


def test_the_template_loads_and_its_comments_are_right(tmp_path: Path):
    file = tmp_path / "ldpstream.toml"
    file.write_text(TEMPLATE)
    config = load_config(file, environment={})
    checkins = config.collections["checkins"]
    assert checkins.options.ranges == (Range("downtown", ((40, 60), (100, 120))),)
    assert checkins.window.hop_ms == checkins.window.size_ms
    assert config.worker.data == tmp_path / "data"
    assert load_spec(file, "checkins").fingerprint == checkins.spec.fingerprint


def test_client_settings_pass_through_and_the_environment_overrides_the_brokers():
    kafka = {"bootstrap": "a:1,b:2", "sasl_mechanism": "PLAIN", "linger_ms": 5}
    tables = {"kafka": kafka, "collection": {"c": MINIMAL}}
    config = read_config(tables, base=Path(), environment={})
    assert config.kafka.bootstrap == "a:1,b:2"
    assert config.kafka.options == {"sasl_mechanism": "PLAIN", "linger_ms": 5}
    environment = {"LDPSTREAM_KAFKA_BOOTSTRAP": "c:3"}
    config = read_config(tables, base=Path(), environment=environment)
    assert config.kafka.bootstrap == "c:3"
    environment = {"LDPSTREAM_KAFKA_BOOTSTRAP": "c:3:"}
    with pytest.raises(ConfigError, match="LDPSTREAM_KAFKA_BOOTSTRAP: expected host:port"):
        read_config(tables, base=Path(), environment=environment)


def test_idle_can_be_off_and_topics_can_be_named():
    checkins = read(with_keys({"window.idle": "off", "topic": "raw"})).collections["checkins"]
    assert checkins.window.idle_ms is None
    assert checkins.topics.late == "raw.late"


MISSING = {
    "mechanism": f"one of {', '.join(sorted(MECHANISMS))}",
    "epsilon": "a finite number above 0",
    "domain": "a table with one of values, size, grid, sizes, interval, file, words",
}


@pytest.mark.parametrize("key", MISSING)
def test_keys_that_decide_about_privacy_have_no_default(key: str):
    table = {k: v for k, v in MINIMAL.items() if k != key}
    message = refusal({"collection": {"checkins": table}})
    assert message == f"collection.checkins.{key}: expected {MISSING[key]}, got none"


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"collection": {}}, "collection: expected at least one table"),
        (
            {"collections": {}},
            "collections: unknown key (did you mean collection?); expected one of kafka, worker",
        ),
        ({"collection": 3}, "collection: expected a table, got 3"),
        ({"collection": {"a b": MINIMAL}}, 'collection."a b": expected letters, digits'),
        ({"worker": {"name": "x"}}, "worker.name: unknown key; expected one of http, token"),
        ({"worker": {"store": "memory"}}, "worker.store: this key is gone: delete the line"),
        ({"worker": {"id": "a/b"}}, "worker.id: expected letters"),
        ({"gateway": {"port": 1}}, "gateway.port: unknown key; expected one of http, token"),
        ({"gateway": {"http": ":1"}}, "gateway.http: expected an address"),
        (
            {"gateway": {"origins": ["a.b"]}},
            (
                "gateway.origins[0]: expected an origin as browsers send it, such as "
                '"https://survey.example", or "*", got "a.b"'
            ),
        ),
        ({"gateway": {"origins": "*"}}, 'gateway.origins: expected a list, got "*"'),
        ({"gateway": {"token": 3}}, "gateway.token: expected a string, { env ="),
        ({"gateway": {"key": "k.pem"}}, "gateway.certificate: expected certificate and key, or"),
        ({"gateway": {"upload_bytes": 500_001}}, "gateway.upload_bytes: expected at most 500000"),
        ({"gateway": {"queue": 0}}, "gateway.queue: expected at least 1, got 0"),
        ({"gateway": {"queue_bytes": 5}}, "gateway.queue_bytes: expected at least 500000, got 5"),
        ({"gateway": {"linger": "61s"}}, 'gateway.linger: expected at most 1m, got "61s"'),
        ({"gateway": {"patience": "0s"}}, "gateway.patience: expected a duration above 0"),
        ({"gateway": {"remembered": 0}}, "gateway.remembered: expected at least 1, got 0"),
        ({"worker": {"http": "6066"}}, 'worker.http: expected an address such as "127.0.0.1:'),
        ({"worker": {"http": "a:99999"}}, "worker.http: expected an address"),
        ({"kafka": {"bootstrap": 9092}}, "kafka.bootstrap: expected a string, got 9092"),
        ({"kafka": {"bootstrap": ""}}, "kafka.bootstrap: expected host:port, several with"),
        (
            {"kafka": {"bootstrap": "kafka://a:1"}},
            'kafka.bootstrap: expected host:port, several with commas, such as "127.0.0.1:9092"',
        ),
        (
            {"kafka": {"bootstrap_servers": "a:1"}},
            "kafka.bootstrap_servers: unknown key (did you mean bootstrap?); expected one of boot",
        ),
        ({"kafka": {"bootstrap": "a:x"}}, "kafka.bootstrap: expected host:port, several with"),
        ({"kafka": {"bootstrap": "a:1,:2"}}, "kafka.bootstrap: expected host:port, several"),
        ({"kafka": {"bootstrap": "a:1,"}}, "kafka.bootstrap: expected host:port, several"),
    ],
)
def test_other_tables_are_refused_by_key_and_expectation(tables: dict[str, Any], message: str):
    assert refusal({"collection": {"c": MINIMAL}, **tables}).startswith(message)


@pytest.mark.parametrize(
    ("first", "second", "problem"),
    [
        ("a", "a", "as the source topic of collection.two, which is also the source topic"),
        ("a", "a.late", "as the source topic of collection.two, which is also the late topic"),
        ("a.rejected", "a", "as the rejected topic of collection.two, which is also the source"),
        ("a", "a.estimates", "which is also the estimates topic of collection.one"),
        ("a", "a.control", "which is also the control topic of collection.one"),
        ("a", "ldpstream-one-changelog", "which is also the changelog topic of collection.one"),
        ("a.b", "a_b", "which is also the source topic of collection.one"),
    ],
)
def test_topics_that_collide_are_refused(first: str, second: str, problem: str):
    tables = {"one": {**MINIMAL, "topic": first}, "two": {**MINIMAL, "topic": second}}
    message = refusal({"collection": tables})
    assert message.startswith("collection.two.topic: expected topics of its own, got ")
    assert problem in message


def test_a_source_named_as_its_own_changelog_is_refused():
    table = {**MINIMAL, "topic": "ldpstream-checkins-changelog"}
    assert "collection.checkins.topic: expected topics of its own" in refusal(
        {"collection": {"checkins": table}}
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"[kafka\n", "line 1: expected TOML: "),
        (b"\n\n[collection.a]\nepsilon = \n", "line 4: expected TOML: Invalid value"),
        (b"a = 1\na = 2\n", "line 2: expected TOML: "),
        (b'a = "', "expected TOML: "),
        (b"\xff\xfe", "expected UTF-8"),
        (b"", "collection: expected at least one table [collection.NAME], got none"),
    ],
)
def test_a_file_that_is_not_toml_is_refused_by_line(tmp_path: Path, text: bytes, problem: str):
    file = tmp_path / "bad.toml"
    file.write_bytes(text)
    with pytest.raises(ConfigError) as caught:
        load_config(file)
    assert str(caught.value).startswith(f"{file}: ")
    assert problem in str(caught.value)


def test_a_missing_file_is_refused(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"absent\.toml: cannot read it: No such file"):
        load_config(tmp_path / "absent.toml")


def test_published_quantiles_must_be_quick_to_compute():
    for domain in ({"size": 4_096}, {"size": 40_000, "blocks": 1_000}):
        read(with_keys({"domain": domain, "publish.quantiles": [0.5]}))
    table = with_keys({"domain": {"size": 4_097}, "publish.quantiles": [0.5]})
    message = refusal({"collection": {"c": table}})
    assert message.startswith("collection.c.publish.quantiles: expected at most 4,096 values")


def test_published_weights_are_given_by_label_or_in_order():
    labels = {"values": ["bus", "train", "walk"]}
    for weights in ({"bus": 2.5, "train": 4}, [2.5, 4, 0]):
        table = with_keys({"domain": labels, "publish.linear": {"fare": weights}})
        (fare,) = read(table).collections["checkins"].options.linear
        assert (fare.name, fare.weights.tolist()) == ("fare", [2.5, 4.0, 0.0])
    assert read(table) == read(table)
    assert read(table) != read(with_keys({"domain": labels, "publish.linear": {"fare": [1, 2, 3]}}))


def test_quantiles_and_ranges_need_an_order():
    labels = {"values": ["bus", "train"]}
    table = with_keys({"domain": labels, "publish.ranges": {"r": [0, 1]}})
    message = refusal({"collection": {"c": table}})
    assert message.endswith(
        ".publish.ranges.r: expected a domain with an order; "
        "labels have none: name a set of them in publish.sets"
    )
    table = with_keys({"domain": labels, "publish.quantiles": [0.5]})
    message = refusal({"collection": {"c": table}})
    assert message.endswith(".publish.quantiles: expected an ordered domain")


@pytest.mark.parametrize(
    ("window", "label", "start"),
    [
        ({"size": "1d"}, "1d", "2026-10-26T00:00:00Z"),
        (BERLIN | {"size": "1d"}, "1d, Europe/Berlin", "2026-10-26T00:00:00+01:00"),
        ({"size": "1w"}, "7d", "2026-10-22T00:00:00Z"),
        ({"size": "1w", "week_start": "thursday"}, "7d", "2026-10-22T00:00:00Z"),
        ({"size": "1w", "week_start": "monday"}, "7d from monday, UTC", "2026-10-26T00:00:00Z"),
        (KOLKATA, "7d from monday, Asia/Kolkata", "2026-10-26T00:00:00+05:30"),
        (KOLKATA | {"hop": "1d"}, "7d every 1d, Asia/Kolkata", "2026-10-27T00:00:00+05:30"),
    ],
)  # fmt: skip
def test_days_and_weeks_begin_where_people_say(window: dict[str, str], label: str, start: str):
    tables = {"collection": {"checkins": with_keys({"window": window})}}
    found = read_config(tables, base=Path(), environment={}).collections["checkins"].window
    assert found.identity.label == label
    assert found.format_time(found.start(found.pane(parse_time("2026-10-26T19:00:00Z")))) == start


PAGE = (Path(__file__).resolve().parents[2] / "docs" / "how-to" / "kafka-auth.md").read_text()
EXAMPLES = re.findall(r"^```toml\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
SECRET = "correct-horse"
LOGIN = {"security_protocol": "SASL_SSL", "sasl_plain_username": "worker"}


def read_kafka(kafka: dict[str, Any], base: Path, **environment: str) -> Config:
    tables = {"kafka": kafka, "collection": {"c": MINIMAL}}
    return read_config(tables, base=base, environment=environment)


def password(config: Config) -> object:
    return settled(config.kafka.options)["sasl_plain_password"]


@pytest.mark.parametrize("ending", ["", "\n", "\r\n"])
def test_a_secret_is_read_when_it_is_needed_and_shown_nowhere(tmp_path: Path, ending: str) -> None:
    (tmp_path / "secret").write_bytes(f"{SECRET}{ending}".encode())
    for given in (SECRET, {"env": "OURS"}, {"file": "secret"}):
        config = read_kafka({**LOGIN, "sasl_plain_password": given}, tmp_path, OURS=SECRET)
        assert password(config) == SECRET
        assert SECRET not in repr(config)
        assert SECRET not in str(dict(config.kafka.options))


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"env": "ABSENT"}, "expected the environment variable ABSENT to be set"),
        ({"env": "EMPTY"}, "expected the environment variable EMPTY to be set"),
        ({"file": "absent"}, r"cannot read .*absent: No such file or directory"),
        ({"file": "empty"}, r"expected the secret in .*empty, but the file is empty"),
        ({"file": "bytes"}, r"expected UTF-8 in .*bytes"),
        ("", "expected a text, got an empty one"),
    ],
)
def test_a_missing_secret_is_refused_when_it_is_needed(
    tmp_path: Path, given: object, problem: str
) -> None:
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    config = read_kafka({**LOGIN, "sasl_plain_password": given}, tmp_path, EMPTY="")
    with pytest.raises(ClientOptionError, match=f"^kafka.sasl_plain_password: {problem}$"):
        password(config)


@pytest.mark.parametrize(
    "given", [SECRET.encode(), 5, {}, {"env": ""}, {"env": "A", "file": "b"}, {"text": SECRET}]
)
def test_a_secret_in_another_form_is_refused_and_not_repeated(
    tmp_path: Path, given: object
) -> None:
    with pytest.raises(ConfigError) as caught:
        read_kafka({**LOGIN, "sasl_plain_password": given}, tmp_path)
    assert str(caught.value) == (
        'kafka.sasl_plain_password: expected a string, { env = "NAME" } or { file = "PATH" }'
    )


def test_files_are_relative_to_the_configuration(tmp_path: Path) -> None:
    options = read_kafka({"ssl_cafile": "ca.pem", "ssl_keyfile": "/k.pem"}, tmp_path).kafka.options
    assert options == {"ssl_cafile": str(tmp_path / "ca.pem"), "ssl_keyfile": "/k.pem"}


def test_the_page_has_examples() -> None:
    assert len(EXAMPLES) == 2


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_of_the_page_are_what_the_clients_take(tmp_path: Path, example: str) -> None:
    secret = tmp_path / "kafka-password"
    secret.write_text(SECRET)
    table = tomllib.loads(example.replace("/run/secrets/kafka-password", str(secret)))["kafka"]
    options = settled(read_kafka(table, tmp_path, WORKER_KEY_PASSWORD=SECRET).kafka.options)
    assert set(options) == set(table) - {"bootstrap"}
    assert (SECRET in options.values()) == ("password" in example)
