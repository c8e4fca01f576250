"""Listeners with TLS and logins: the whole path through each, and one plain line where it fails."""

import asyncio
import json
import os
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.broker.pages.acls import documented, grant
from tests.broker.pages.listeners import PASSWORD, USER, Secured
from tests.broker.values import value_lines
from tests.brokers import Broker, wait_until
from tests.certificates import KEY_PASSWORD
from tests.lab import START_MS, Lab
from tests.ledger import WINDOW_MS
from tests.processes import PATIENCE_SECONDS, Worker
from tests.stream.cli import invoke, refused, spawn

pytestmark = pytest.mark.broker

WRONG = "a-wrong-secret"
LISTENERS = (
    ("SSL", ""),
    ("MUTUAL", ""),
    ("SASL_PLAINTEXT", "SCRAM-SHA-256"),
    ("SASL_PLAINTEXT", "PLAIN"),
    ("SASL_SSL", "SCRAM-SHA-512"),
    ("SASL_SSL", "PLAIN"),
)


async def permit(secured: Secured, lab: Lab, user: str) -> None:
    """Permit a user what docs/how-to/kafka-auth.md lists for a worker, with this lab's names."""
    names = {
        "ldpstream-checkins-changelog": lab.collection.topics.changelog,
        "checkins.reports": lab.collection.topics.source,
        "--group ldpstream": f"--group {lab.config.worker.id}",
        "User:worker": f"User:{user}",
    }
    async with secured.administrator() as client:
        await grant(client, documented("docs/how-to/kafka-auth.md", "Permissions", names))


@pytest.mark.parametrize(("listener", "mechanism"), LISTENERS)
def test_the_whole_path_with_the_documented_permissions(
    secured: Secured, tmp_path: Path, listener: str, mechanism: str
) -> None:
    lab = Lab(secured.broker(listener, mechanism=mechanism), tmp_path)
    file = str(lab.file)
    if listener.startswith("SASL"):
        asyncio.run(permit(secured, lab, USER))
    said = [invoke("check", "-c", file)]
    with lab.worker() as worker:
        values = value_lines(2_000)
        counts = counts_by_window(values)
        said.append(invoke("send", "-c", file, "--times", "--replay", "trips", stdin=values))
        until = str(START_MS + 2 * WINDOW_MS)
        said.append(invoke("close", "-c", file, "--until", until, "trips"))
        wait_until(lambda: finals(worker) == counts, "two finals")
        said.append(invoke("query", "--all", "--json", worker.url, "trips"))
        seen = published(worker)
        assert worker.terminate() == 0
        seen += worker.errors()
    for done in said:
        assert (done.exit_code, done.stderr) == (0, "")
        seen += done.output
    windows = json.loads(said[-1].stdout)["windows"]
    assert [window["n"] for window in windows] == counts
    for secret in (PASSWORD, KEY_PASSWORD):
        assert secret not in seen
        assert secret not in repr(lab.config)


def counts_by_window(values: str) -> list[int]:
    starts = [int(line.split(",")[0]) // WINDOW_MS for line in values.splitlines()]
    return [starts.count(start) for start in sorted(set(starts))]


def finals(worker: Worker) -> list[int]:
    listed = worker.get("/api/collections/trips/windows?all=true")["windows"]
    return [window["n"] for window in listed if window["final"]]


def published(worker: Worker) -> str:
    """Return all that a worker serves over HTTP."""
    found = ""
    for path in ("/", "/metrics", "/healthz", "/readyz", "/openapi.json", "/api/collections"):
        with urllib.request.urlopen(worker.url + path, timeout=PATIENCE_SECONDS) as answer:
            found += answer.read().decode()
    return found


async def test_a_verbose_worker_shows_no_secret(secured: Secured, tmp_path: Path) -> None:
    broker = secured.broker("SASL_SSL")
    given = {**broker.security, "sasl_plain_password": PASSWORD}
    lab = Lab(Broker("kafka", broker.bootstrap, given), tmp_path)
    await permit(secured, lab, USER)
    assert PASSWORD in lab.file.read_text()
    assert PASSWORD not in repr(lab.config)
    said = tmp_path / "said"
    with said.open("wb") as stream:
        worker = lab.start_worker(arguments=("--verbose",), stderr=stream)
        try:
            await asyncio.to_thread(worker.wait_ready)
            assert worker.terminate() == 0
        finally:
            worker.kill()
    assert "Authenticated as worker via SCRAM-SHA-512" in said.read_text()
    assert PASSWORD not in said.read_text()


@pytest.mark.parametrize(
    ("listener", "client", "change", "expected"),
    [
        (
            "SASL_SSL",
            "SASL_SSL",
            {"sasl_plain_password": WRONG},
            "look at kafka.sasl_plain_username and kafka.sasl_plain_password",
        ),
        (
            "SASL_SSL",
            "SASL_SSL",
            {"sasl_mechanism": "PLAIN", "sasl_plain_password": WRONG},
            "look at kafka.sasl_plain_username and kafka.sasl_plain_password",
        ),
        (
            "SASL_PLAINTEXT",
            "SASL_PLAINTEXT",
            {"sasl_mechanism": "SCRAM-SHA-512"},
            "it offers no SCRAM-SHA-512 here: set kafka.sasl_mechanism to what it does",
        ),
        (
            "SASL_SSL",
            "SASL_SSL",
            {"ssl_cafile": "STRANGER"},
            "set kafka.ssl_cafile to the certificate of the authority that signed it",
        ),
        ("SSL", "SSL", {"ssl_cafile": None}, "set kafka.ssl_cafile to the certificate of the"),
        ("MUTUAL", "SSL", {}, "set kafka.ssl_certfile and kafka.ssl_keyfile to one that it"),
        ("SSL", "PLAINTEXT", {}, 'it speaks TLS here: set kafka.security_protocol = "SSL"'),
        ("SASL_SSL", "SASL_PLAINTEXT", {}, 'set kafka.security_protocol = "SASL_SSL"'),
        ("PLAINTEXT", "SSL", {}, 'or kafka.security_protocol = "PLAINTEXT"'),
        ("SASL_PLAINTEXT", "PLAINTEXT", {}, 'set kafka.security_protocol = "SASL_PLAINTEXT"'),
        ("SASL_SSL", "SSL", {}, 'set kafka.security_protocol = "SASL_SSL", and sasl_mechanism'),
        ("SSL", "SASL_SSL", {}, 'asks for no login here: set kafka.security_protocol = "SSL"'),
    ],
)
def test_the_setting_that_keeps_us_out_is_named(
    secured: Secured,
    tmp_path: Path,
    listener: str,
    client: str,
    change: Mapping[str, object],
    expected: str,
) -> None:
    lab = misconfigured(secured, tmp_path, listener, client, change)
    for command in (("check",), ("send", "trips")):
        said = refused(invoke(command[0], "-c", str(lab.file), *command[1:], stdin="1\n"), code=1)
        assert said.startswith(f"the broker at {secured.bootstrap(listener)} does not let us in: ")
        assert expected in said
        assert WRONG not in said
        assert PASSWORD not in said


def misconfigured(
    secured: Secured, folder: Path, listener: str, client: str, change: Mapping[str, object]
) -> Lab:
    settings = {**secured.broker(client).security, **change}
    if settings.get("ssl_cafile") == "STRANGER":
        settings["ssl_cafile"] = str(secured.files.stranger)
    given = {key: value for key, value in settings.items() if value is not None}
    return Lab(Broker("kafka", secured.bootstrap(listener), given), folder)


def test_a_worker_that_is_not_let_in_ends_with_one_line(secured: Secured, tmp_path: Path) -> None:
    wrong: Mapping[str, object] = {"sasl_plain_password": WRONG}
    for listener, client, change, expected in (
        ("SASL_SSL", "SASL_SSL", wrong, "kafka.sasl_plain_password"),
        ("SSL", "PLAINTEXT", {}, 'set kafka.security_protocol = "SSL"'),
    ):
        lab = misconfigured(secured, tmp_path, listener, client, change)
        done = spawn("worker", "-c", str(lab.file))
        assert (done.returncode, done.stdout) == (1, b"")
        (line,) = done.stderr.decode().splitlines()
        assert expected in line
        assert WRONG not in line


def test_a_secret_comes_from_the_environment(secured: Secured, tmp_path: Path) -> None:
    change = {"sasl_plain_password": {"env": "OUR_PASSWORD"}}
    settings = {**secured.broker("SASL_SSL").security, **change}
    lab = Lab(Broker("kafka", secured.bootstrap("SASL_SSL"), settings), tmp_path)
    without = {key: value for key, value in os.environ.items() if key != "OUR_PASSWORD"}
    for environment, expected in (
        (without, "kafka.sasl_plain_password: expected the environment variable OUR_PASSWORD to"),
        ({**without, "OUR_PASSWORD": WRONG}, "does not let us in: it does not know this user"),
        # Let in, and then not permitted.
        ({**without, "OUR_PASSWORD": PASSWORD}, "TopicAuthorizationFailedError"),
    ):
        said = spawn("check", "-c", str(lab.file), environment=environment).stderr.decode()
        assert said.count("\n") == 1
        assert expected in said
