"""Settings of `[kafka]` reach every client under its own names, or are refused by name."""

import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from faust.types.auth import AuthProtocol, SASLMechanism

from ldpstream.agents.broker import clients
from ldpstream.agents.broker.clients import replication_factor
from ldpstream.agents.config.client_options import ClientOptionError, settled
from ldpstream.agents.worker import faust_settings

BOOTSTRAP = "one:9092, two:9093"


def test_an_unknown_option_is_refused_by_name() -> None:
    told = r"^kafka\.sesion_timeout_ms: unknown key \(did you mean session_timeout_ms\?\); expected"
    with pytest.raises(ClientOptionError, match=told):
        faust_settings(BOOTSTRAP, {"sesion_timeout_ms": 1})


async def test_every_client_refuses_unknown_options() -> None:
    options = {"acks": 1}
    with pytest.raises(ClientOptionError):
        clients.producer(BOOTSTRAP, options)
    with pytest.raises(ClientOptionError):
        clients.reader(BOOTSTRAP, options, committed_only=True)
    with pytest.raises(ClientOptionError):
        clients.admin(BOOTSTRAP, options)


def test_faust_connects_as_the_other_clients_do() -> None:
    options = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_plain_username": "worker",
        "sasl_plain_password": "secret",
        "session_timeout_ms": 6000,
        "heartbeat_interval_ms": 1500,
        "request_timeout_ms": 30_000,
        "client_id": "counter",
    }
    settings = faust_settings(BOOTSTRAP, options)
    credentials = settings.pop("broker_credentials")
    assert settings == {
        "web_bind": "127.0.0.1",
        "broker": ["kafka://one:9092", "kafka://two:9093"],
        "broker_session_timeout": 6.0,
        "broker_heartbeat_interval": 1.5,
        "broker_request_timeout": 30.0,
        "broker_client_id": "counter",
        "consumer_metadata_max_age_ms": 30_000,
        "web_port": 6065,
    }
    assert credentials.protocol is AuthProtocol.SASL_PLAINTEXT
    assert credentials.mechanism is SASLMechanism.SCRAM_SHA_256
    assert (credentials.username, credentials.password) == ("worker", "secret")


def test_a_session_is_no_longer_than_requests_may_take() -> None:
    settings = faust_settings(BOOTSTRAP, {"session_timeout_ms": 600_000})
    assert (settings["broker_session_timeout"], settings["broker_request_timeout"]) == (600, 600)
    with pytest.raises(ClientOptionError) as refused:
        faust_settings(BOOTSTRAP, {"session_timeout_ms": 600_000, "request_timeout_ms": 90_000})
    assert str(refused.value) == (
        "kafka.request_timeout_ms: expected at least session_timeout_ms = 600000, got 90000"
    )


def test_heartbeats_are_shorter_than_the_session() -> None:
    with pytest.raises(ClientOptionError) as refused:
        faust_settings(BOOTSTRAP, {"session_timeout_ms": 3000, "heartbeat_interval_ms": 3000})
    assert str(refused.value) == (
        "kafka.heartbeat_interval_ms: expected less than session_timeout_ms = 3000, "
        "got 3000; a third of it or less is usual"
    )


def test_tls_needs_no_login() -> None:
    credentials = faust_settings(BOOTSTRAP, {"security_protocol": "SSL"})["broker_credentials"]
    assert credentials.protocol is AuthProtocol.SSL
    assert credentials.context is not None


def test_the_heartbeat_follows_a_short_session() -> None:
    settings = faust_settings(BOOTSTRAP, {"session_timeout_ms": 1500})
    assert settings["broker_heartbeat_interval"] == 0.5


def test_a_static_member_has_a_longer_session() -> None:
    alone = faust_settings(BOOTSTRAP, {})
    assert (alone["broker_session_timeout"], alone["broker_heartbeat_interval"]) == (6.0, 1.0)
    assert "consumer_group_instance_id" not in alone
    static = faust_settings(BOOTSTRAP, {}, instance="one")
    assert (static["broker_session_timeout"], static["broker_heartbeat_interval"]) == (30.0, 1.0)
    assert static["consumer_group_instance_id"] == "one"
    own = faust_settings(BOOTSTRAP, {"session_timeout_ms": 9000}, instance="one")
    assert own["broker_session_timeout"] == 9.0


@pytest.mark.parametrize(
    ("options", "brokers", "factor"),
    [({}, 1, 1), ({}, 2, 2), ({}, 9, 3), ({"replication_factor": 5}, 9, 5)],
)
def test_the_replication_factor_is_three_at_most_unless_given(
    options: dict[str, int], brokers: int, factor: int
) -> None:
    assert replication_factor(options, brokers=brokers) == factor


async def test_producers_are_idempotent_unless_told_otherwise() -> None:
    for options, idempotent in (({}, True), ({"enable_idempotence": False}, False)):
        producer = clients.producer(BOOTSTRAP, options)
        assert (producer._txn_manager is not None) is idempotent
        await producer.stop()


async def test_readers_are_made_with_the_options() -> None:
    options = {"fetch_max_bytes": 77, "client_id": "counter"}
    reader = clients.reader(BOOTSTRAP, options, committed_only=True)
    assert reader._isolation_level == "read_committed"
    assert reader._fetch_max_bytes == 77
    assert reader._client._client_id == "counter"
    assert {host[:2] for host in reader._client.hosts} == {("one", 9092), ("two", 9093)}
    await reader.stop()


@pytest.mark.parametrize(("options", "age_ms"), [({}, 30_000), ({"metadata_max_age_ms": 9}, 9)])
async def test_every_client_refreshes_its_metadata_twice_a_minute_or_as_set(
    options: dict[str, int], age_ms: int
) -> None:
    reader = clients.reader(BOOTSTRAP, options, committed_only=True)
    assert reader._client._metadata_max_age_ms == age_ms
    await reader.stop()
    producer = clients.producer(BOOTSTRAP, options)
    assert producer.client._metadata_max_age_ms == age_ms
    await producer.stop()
    assert faust_settings(BOOTSTRAP, options)["consumer_metadata_max_age_ms"] == age_ms


async def test_a_fetch_response_is_bounded_over_all_partitions() -> None:
    reader = clients.reader(BOOTSTRAP, {}, committed_only=False)
    assert reader._fetch_max_bytes == 8 << 20
    await reader.stop()


LOGIN = {"security_protocol": "SASL_SSL", "sasl_plain_username": "u", "sasl_plain_password": "p"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"security_protocol": "TLS"}, "kafka.security_protocol: expected one of PLAINTEXT, SSL"),
        ({**LOGIN, "sasl_mechanism": "SCRAM"}, "kafka.sasl_mechanism: expected one of PLAIN, SC"),
        ({"compression_type": "brotli"}, "kafka.compression_type: expected one of none, gzip"),
        ({"session_timeout_ms": "6000"}, "kafka.session_timeout_ms: expected a whole number"),
        ({"replication_factor": True}, "kafka.replication_factor: expected a whole number"),
        ({"enable_idempotence": 1}, "kafka.enable_idempotence: expected true or false"),
        ({**LOGIN, "sasl_plain_password": 77}, "kafka.sasl_plain_password: expected a string"),
        (
            {"sasl_plain_password": "p"},
            "kafka.security_protocol: expected SASL_SSL with kafka.sasl_plain_password, got none,",
        ),
        (
            {"security_protocol": "SSL", "sasl_mechanism": "PLAIN"},
            "kafka.security_protocol: expected SASL_SSL with kafka.sasl_mechanism, got SSL",
        ),
        (
            {"ssl_cafile": "ca.pem"},
            "kafka.security_protocol: expected SSL or SASL_SSL with kafka.ssl_cafile, got none,",
        ),
        (
            {"security_protocol": "SASL_SSL", "sasl_plain_username": "u"},
            "kafka.sasl_plain_password: expected a value with security_protocol = SASL_SSL, got no",
        ),
        (
            {"security_protocol": "SSL", "ssl_keyfile": "k.pem"},
            "kafka.ssl_certfile: expected a file with ssl_keyfile, got none",
        ),
    ],
)
def test_impossible_options_are_refused_by_name(options: dict[str, object], message: str) -> None:
    with pytest.raises(ClientOptionError, match="^" + re.escape(message)) as caught:
        settled(options)
    assert "77" not in str(caught.value)


def test_files_that_are_no_certificates_are_refused_by_name(tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    empty.write_text("nothing\n")
    for options, message in (
        ({"ssl_cafile": str(empty)}, "kafka.ssl_cafile: expected certificates in PEM format"),
        ({"ssl_certfile": str(empty)}, "kafka.ssl_keyfile: expected a certificate and its"),
        ({"ssl_cafile": str(tmp_path / "no")}, "kafka.ssl_cafile: cannot read "),
    ):
        with pytest.raises(ClientOptionError, match=f"^{message}"):
            faust_settings(BOOTSTRAP, {"security_protocol": "SSL", **options})


@pytest.mark.parametrize(
    ("configured", "used"), [("none", 0), ("gzip", 1), ("snappy", 2), ("lz4", 3), ("zstd", 4)]
)
async def test_every_codec_can_be_chosen(configured: str, used: int) -> None:
    producer = clients.producer(BOOTSTRAP, {"compression_type": configured})
    assert producer._message_accumulator._compression_type == used
    await producer.stop()


OPTIONS = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "GSSAPI"}


class GSSError(Exception):
    """Stands for the package's own error."""


def package(lifetime: int | None, *, fails: bool = False) -> Any:
    """Return a stand-in for the package, with a ticket of this lifetime in seconds."""

    def credentials(*, usage: str) -> Any:
        assert usage == "initiate"
        if fails:
            raise GSSError
        return SimpleNamespace(lifetime=lifetime)

    return SimpleNamespace(Credentials=credentials, exceptions=SimpleNamespace(GSSError=GSSError))


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        (None, "expected the package gssapi (pip install gssapi), got none"),
        (package(None, fails=True), "expected a Kerberos ticket, got none: run kinit"),
        (package(0), "expected a Kerberos ticket, got an expired one: run kinit"),
    ],
)
def test_a_missing_package_or_ticket_is_named(
    monkeypatch: pytest.MonkeyPatch, module: Any, expected: str
) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", module)
    with pytest.raises(ClientOptionError) as refused:
        settled(OPTIONS)
    assert str(refused.value) == f"kafka.sasl_mechanism: {expected}"


@pytest.mark.parametrize("lifetime", [3600, None])
def test_a_ticket_is_enough(monkeypatch: pytest.MonkeyPatch, lifetime: int | None) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", package(lifetime))
    assert settled(OPTIONS) == OPTIONS


def test_other_logins_need_no_ticket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    plain = {"security_protocol": "SASL_PLAINTEXT", "sasl_plain_username": "a"}
    plain["sasl_plain_password"] = "b"
    assert settled(plain) == plain
