"""`[kafka]`: secrets in the file, in the environment, in files; and the page's own examples."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from ldpstream.agents.config import Config, ConfigError, read_config
from ldpstream.agents.config.client_options import ClientOptionError, settled
from tests.property.configs import MINIMAL

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "how-to" / "kafka-auth.md").read_text()
EXAMPLES = re.findall(r"^```toml\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
SECRET = "correct-horse"
LOGIN = {"security_protocol": "SASL_SSL", "sasl_plain_username": "worker"}


def read(kafka: dict[str, Any], base: Path, **environment: str) -> Config:
    tables = {"kafka": kafka, "collection": {"c": MINIMAL}}
    return read_config(tables, base=base, environment=environment)


def password(config: Config) -> object:
    return settled(config.kafka.options)["sasl_plain_password"]


@pytest.mark.parametrize("ending", ["", "\n", "\r\n"])
def test_a_secret_is_read_when_it_is_needed_and_shown_nowhere(tmp_path: Path, ending: str) -> None:
    (tmp_path / "secret").write_bytes(f"{SECRET}{ending}".encode())
    for given in (SECRET, {"env": "OURS"}, {"file": "secret"}):
        config = read({**LOGIN, "sasl_plain_password": given}, tmp_path, OURS=SECRET)
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
    config = read({**LOGIN, "sasl_plain_password": given}, tmp_path, EMPTY="")
    with pytest.raises(ClientOptionError, match=f"^kafka.sasl_plain_password: {problem}$"):
        password(config)


@pytest.mark.parametrize(
    "given", [SECRET.encode(), 5, {}, {"env": ""}, {"env": "A", "file": "b"}, {"text": SECRET}]
)
def test_a_secret_in_another_form_is_refused_and_not_repeated(
    tmp_path: Path, given: object
) -> None:
    with pytest.raises(ConfigError) as caught:
        read({**LOGIN, "sasl_plain_password": given}, tmp_path)
    assert str(caught.value) == (
        'kafka.sasl_plain_password: expected a string, { env = "NAME" } or { file = "PATH" }'
    )


def test_files_are_relative_to_the_configuration(tmp_path: Path) -> None:
    options = read({"ssl_cafile": "ca.pem", "ssl_keyfile": "/k.pem"}, tmp_path).kafka.options
    assert options == {"ssl_cafile": str(tmp_path / "ca.pem"), "ssl_keyfile": "/k.pem"}


def test_the_page_has_examples() -> None:
    assert len(EXAMPLES) == 2


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_of_the_page_are_what_the_clients_take(tmp_path: Path, example: str) -> None:
    secret = tmp_path / "kafka-password"
    secret.write_text(SECRET)
    table = tomllib.loads(example.replace("/run/secrets/kafka-password", str(secret)))["kafka"]
    options = settled(read(table, tmp_path, WORKER_KEY_PASSWORD=SECRET).kafka.options)
    assert set(options) == set(table) - {"bootstrap"}
    assert (SECRET in options.values()) == ("password" in example)
