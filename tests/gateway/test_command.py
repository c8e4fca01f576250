"""`ldpstream gateway` where it cannot run: one message, and which key to look at."""

from pathlib import Path

import pytest

from tests.ports import free_ports
from tests.stream.cli import PLACES, configured, invoke, refused, spawn

FREE = '[gateway]\nhttp = "127.0.0.1:0"\n'


def test_without_a_broker_it_says_so_and_fails(tmp_path: Path):
    nobody = f"127.0.0.1:{free_ports(1)[0]}"
    file = configured(tmp_path, f'[kafka]\nbootstrap = "{nobody}"\n' + FREE + PLACES)
    result = spawn("gateway", "-c", file)
    assert (result.returncode, result.stdout) == (1, b"")
    assert result.stderr.startswith(f"no broker answers at {nobody}: ".encode())
    assert result.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('token = "short"', "gateway.token: expected at least 16 visible ASCII characters"),
        ('token = { env = "NO_SUCH" }', "gateway.token: expected the environment variable NO_SUC"),
        ('certificate = "a.pem"\nkey = "b.pem"', "gateway.certificate: cannot read "),
        ('linger = "2m"', "gateway.linger: expected at most 1m"),
        ("[kafka]\ncolour = 3", "kafka.colour: unknown key; expected one of bootstrap, "),
    ],
)
def test_impossible_settings_are_wrong_input(tmp_path: Path, table: str, message: str):
    file = configured(tmp_path, f"[gateway]\n{table}\n" + PLACES)
    assert refused(invoke("gateway", "-c", file)).startswith(f"{file}: {message}")
