"""Hosts that no look-up can take are refused where they are written, and so are such URLs."""

from pathlib import Path

import pytest

import ldpstream as ldp
from ldpstream.agents.client import AddressError
from ldpstream.agents.config.client_options import ClientOptionError
from ldpstream.agents.device import Sender
from tests.stream.cli import PLACES, configured, invoke, refused
from tests.stream.modes import MODES

LONG = "a" * 70
HOSTS = [".svc", "kafka..svc", "...", LONG, f"kafka.{LONG}.svc", "a b", "kafka/svc", ""]
COMMANDS = ["check", "worker", "gateway", "send modes", "finals modes", "simulate modes"]
EVERY = [("check", host) for host in HOSTS] + [
    (command, host) for command in COMMANDS[1:] for host in (".svc", LONG)
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
