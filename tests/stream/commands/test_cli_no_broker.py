"""Commands that need a broker, without one or with impossible settings and hosts."""

import json
import socket
import urllib.error
from collections.abc import Iterator
from pathlib import Path

import pytest

import ldpstream as ldp
from ldpstream.agents.broker import connections, probe
from ldpstream.agents.client import AddressError
from ldpstream.agents.config.client_options import ClientOptionError
from ldpstream.agents.device import Sender
from tests.processes import PATIENCE_SECONDS, Worker, eventually
from tests.stream.cli import PLACES, begin, configured, invoke, refused, spawn
from tests.stream.modes import MODES

COMMANDS = [
    (["check"], ""),
    (["send", "modes"], "bus\n"),
    (["close", "--until", "2026-11-21T10:00:00Z", "modes"], ""),
    (["reset", "--yes", "modes"], ""),
]

SHORT = "request_timeout_ms = 200\nsession_timeout_ms = 200\n"


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address where nobody listens, for as long as the test runs."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


@pytest.mark.slow
@pytest.mark.parametrize(("command", "stdin"), COMMANDS)
def test_an_absent_broker_is_reported_in_one_line(
    tmp_path: Path, nobody: str, command: list[str], stdin: str
):
    file = configured(tmp_path, f'[kafka]\nbootstrap = "{nobody}"\n' + PLACES)
    said = refused(invoke(command[0], "-c", file, *command[1:], stdin=stdin), code=1)
    assert said == (
        f"no broker answers at {nobody}: is it running, and are kafka.bootstrap or "
        "LDPSTREAM_KAFKA_BOOTSTRAP right?"
    )


@pytest.mark.slow
def test_check_names_timeouts_that_no_worker_starts_with(tmp_path: Path, nobody: str):
    for times, key in (
        ("session_timeout_ms = 600000\nrequest_timeout_ms = 90000", "request_timeout_ms"),
        ("session_timeout_ms = 3000\nheartbeat_interval_ms = 3000", "heartbeat_interval_ms"),
    ):
        file = configured(tmp_path, f'[kafka]\nbootstrap = "{nobody}"\n{times}\n' + PLACES)
        result = invoke("check", "-c", file)
        assert result.exit_code == 1
        first, second = result.stderr.splitlines()
        assert first.startswith(f"kafka.{key}: expected ")
        assert second.startswith(f"no broker answers at {nobody}: ")


@pytest.mark.slow
@pytest.mark.parametrize(("command", "stdin"), COMMANDS)
def test_waiting_for_a_broker_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], stdin: str
):
    """The broker accepts connections and never answers, as behind some firewalls."""
    monkeypatch.setattr(connections, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(probe, "_PATIENCE_MS", 100)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = f"127.0.0.1:{mute.getsockname()[1]}"
        kafka = f'[kafka]\nbootstrap = "{address}"\n{SHORT}'
        file = configured(tmp_path, kafka + PLACES)
        result = invoke(command[0], "-c", file, *command[1:], stdin=stdin)
    assert result.exit_code == 1
    waiting, refusal = result.stderr.splitlines()
    assert waiting == f"waiting for the broker at {address} to answer"
    assert refusal.startswith(f"no broker answers at {address}: ")


@pytest.mark.slow
@pytest.mark.parametrize("command", ["worker", "gateway"])
def test_a_process_that_waits_for_a_broker_ends_on_sigterm(tmp_path: Path, command: str):
    """It does not wait for its clients to give up, which they do after 40 s."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        mute.settimeout(PATIENCE_SECONDS)
        address = f"127.0.0.1:{mute.getsockname()[1]}"
        data = f'[worker]\ndata = "{tmp_path}"\nhttp = "127.0.0.1:0"\n'
        kafka = f'[kafka]\nbootstrap = "{address}"\n[gateway]\nhttp = "127.0.0.1:0"\n'
        file = configured(tmp_path, data + kafka + PLACES)
        waiting = Worker(begin(command, "-c", file))
        try:
            asked, _ = mute.accept()
            with asked:
                assert waiting.terminate() == 0
            assert waiting.errors() == ""
        finally:
            waiting.kill()


@pytest.mark.slow
async def test_a_worker_that_waits_for_a_broker_says_so_and_ends_on_sigterm(
    tmp_path: Path, nobody: str
):
    with socket.create_server(("127.0.0.1", 0)) as free:
        http = f"127.0.0.1:{free.getsockname()[1]}"
    kafka = f'[kafka]\nbootstrap = "{nobody}"\n[worker]\nhttp = "{http}"\n'
    waiting = Worker(begin("worker", "-c", configured(tmp_path, kafka + PLACES)))
    waiting.url = f"http://{http}"
    try:
        await eventually(lambda: "the broker does not answer" in reasons(waiting))
        assert waiting.terminate() == 0
        (line,) = waiting.errors().splitlines()
        assert f"no broker answers at {nobody}: " in line
        assert line.endswith("waits for it")
    finally:
        waiting.kill()


def reasons(worker: Worker) -> list[str]:
    """Return why a worker is not ready; nothing while it does not serve yet."""
    try:
        return worker.get("/readyz")["reasons"]
    except urllib.error.HTTPError as error:
        with error:
            return json.loads(error.read())["reasons"]
    except urllib.error.URLError:
        return []


@pytest.mark.slow
def test_a_worker_that_anybody_could_read_refuses_to_start(tmp_path: Path, nobody: str):
    worker = f'[kafka]\nbootstrap = "{nobody}"\n[worker]\nhttp = "0.0.0.0:0"\n'
    result = spawn("worker", "-c", configured(tmp_path, worker + PLACES))
    assert (result.returncode, result.stdout) == (1, b"")
    assert result.stderr.startswith(b"worker.token: expected a token, because others can reach")
    assert result.stderr.count(b"\n") == 1


@pytest.mark.slow
def test_the_environment_names_the_broker(
    tmp_path: Path, nobody: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("LDPSTREAM_KAFKA_BOOTSTRAP", nobody)
    said = refused(invoke("check", "-c", configured(tmp_path)), code=1)
    assert said.startswith(f"no broker answers at {nobody}: ")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("colour = 3", "kafka.colour: unknown key; expected one of bootstrap, "),
        ('security_protocol = "PLAIN"', "kafka.security_protocol: expected one of PLAINTEXT, SSL"),
        ('security_protocol = "SSL"\nssl_cafile = "absent.pem"', "kafka.ssl_cafile: cannot read "),
    ],
)
@pytest.mark.parametrize(("command", "stdin"), [*COMMANDS, (["worker"], "")])
def test_impossible_client_settings_are_wrong_input(
    tmp_path: Path, setting: str, message: str, command: list[str], stdin: str
):
    file = configured(tmp_path, f"[kafka]\n{setting}\n" + PLACES)
    said = refused(invoke(command[0], "-c", file, *command[1:], stdin=stdin))
    assert said.startswith(f"{file}: {message}")


@pytest.mark.slow
@pytest.mark.parametrize("batch", ["0", "50001", "many"])
def test_impossible_batch_sizes_are_refused(tmp_path: Path, batch: str):
    said = refused(invoke("send", "-c", configured(tmp_path), "--batch", batch, "modes"))
    assert "Invalid value for '--batch'" in said


@pytest.mark.slow
def test_a_development_broker_refuses_a_port_in_use(nobody: str):
    host, _, port = nobody.partition(":")
    said = refused(invoke("devbroker", "--port", port), code=1)
    assert said.startswith(f"cannot serve on {host}:{port}: Address already in use; choose another")


LONG = "a" * 70
HOSTS = [".svc", "kafka..svc", "...", LONG, f"kafka.{LONG}.svc", "a b", "kafka/svc", ""]
CONNECTING = ["check", "worker", "gateway", "send modes", "finals modes", "simulate modes"]
EVERY = [("check", host) for host in HOSTS] + [
    (command, host) for command in CONNECTING[1:] for host in (".svc", LONG)
]
"""All hosts, which are read in one place, by one command, and by the others those of reports."""


@pytest.mark.parametrize(("command", "host"), EVERY)
def test_every_command_refuses_an_impossible_broker(tmp_path: Path, host: str, command: str):
    file = configured(tmp_path, f'[kafka]\nbootstrap = "broker:1, {host}:9092"\n{PLACES}')
    name, *rest = command.split()
    said = refused(invoke(name, "-c", file, *rest, stdin="bus\n"))
    assert said.startswith(f"{file}: kafka.bootstrap: expected host:port, several with commas")


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("key", ["worker.http", "gateway.http", "worker.advertise"])
def test_addresses_of_this_machine_are_checked_alike(tmp_path: Path, host: str, key: str):
    table, name = key.split(".")
    address = f"http://{host}:80" if name == "advertise" else f"{host}:80"
    file = configured(tmp_path, f'[{table}]\n{name} = "{address}"\n{PLACES}')
    assert refused(invoke("certify", "-c", file)).startswith(f"{file}: {key}: expected an address")


@pytest.mark.parametrize("good", ["[::1]:9092", "::1:9092", "kafka.svc.:9092", "kafka"])
def test_possible_brokers_are_taken(tmp_path: Path, good: str):
    file = configured(tmp_path, f'[kafka]\nbootstrap = "{good}"\n{PLACES}')
    assert invoke("certify", "-c", file, "modes").exit_code == 0


@pytest.mark.parametrize("host", HOSTS)
async def test_a_sender_refuses_an_impossible_broker(host: str):
    with pytest.raises(ClientOptionError, match=r"^kafka\.bootstrap: expected host:port"):
        async with Sender(MODES.spec, f"{host}:9092"):
            pass


@pytest.mark.parametrize(
    "rest", [*(one for one in HOSTS if "/" not in one), "x:99999", "x:1_0", "x:\uff11", "[::1"]
)
@pytest.mark.parametrize("command", ["query {} modes", "status {}"])
def test_every_url_is_checked_before_it_is_asked(rest: str, command: str):
    url = f"http://{rest}"
    said = invoke(*(url if part == "{}" else part for part in command.split()))
    assert said.exit_code == 2
    assert said.stderr.endswith(": expected a URL such as http://127.0.0.1:6066\n")
    with pytest.raises(AddressError, match="expected a URL such as"):
        ldp.query(url, "modes")
