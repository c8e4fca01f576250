"""What can be checked of the containers without an engine: files, names, paths, ports, users.

`tests/ops/test_compose_natively.py` runs the same configuration without containers.
"""

import asyncio
import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from ldpstream.agents.cli.main import COMMANDS, main
from ldpstream.agents.config import load_config
from tests.attack.stand import Stand
from tests.attack.supply import private_umask
from tests.brokers import Broker
from tests.ops.queries import DOCKER
from tests.pages import blocks

ROOT = DOCKER.parent
COMPOSE: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OWN = [name for name, service in SERVICES.items() if service["image"] == "ldpstream"]
DOCKERFILE = (DOCKER / "Dockerfile").read_text()
CONFIG = "/etc/ldpstream/ldpstream.toml"


def own_config(tmp_path: Path) -> Any:
    """Return the containers' configuration, its secret in a file of the test."""
    secret = tmp_path / "read-token"
    secret.write_text("0123456789abcdef")
    text = (DOCKER / "ldpstream.toml").read_text()
    assert text.count('"/run/secrets/read-token"') == 1
    (tmp_path / "ldpstream.toml").write_text(text.replace("/run/secrets/read-token", str(secret)))
    return load_config(tmp_path / "ldpstream.toml", environment={})


def property_lines(name: str) -> dict[str, str]:
    lines = (DOCKER / "kafka" / name).read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def containers_port(service: str) -> dict[str, str]:
    """Return a service's published ports, from the container's to the host's address."""
    return {port.rpartition(":")[2]: port.rpartition(":")[0] for port in SERVICES[service]["ports"]}


def test_the_commands_exist_and_take_their_arguments():
    for name in OWN:
        command = SERVICES[name].get("command", _default_command())
        assert command[0] in COMMANDS
        assert command[1:3] == ["-c", CONFIG]
        # A wrong option is refused before --help is printed.
        result = CliRunner().invoke(main, [*command, "--help"])
        assert result.exit_code == 0, (name, result.output)
        options = {word for word in command if word.startswith("--")}
        assert options <= set(re.findall(r"--[a-z-]+", result.output)), name


def _default_command() -> list[str]:
    found = re.search(r"^CMD \[(.*)\]$", DOCKERFILE, re.MULTILINE)
    assert found is not None
    return [word.strip().strip('"') for word in found[1].split(",")]


def test_every_collection_named_in_a_command_is_configured(tmp_path: Path):
    collections = own_config(tmp_path).collections
    commands = [SERVICES[name]["command"] for name in OWN if "command" in SERVICES[name]]
    named = {command[3] for command in commands if command[0] == "simulate"}
    assert named == set(collections)


def test_addresses_agree(tmp_path: Path):
    config = own_config(tmp_path)
    kafka = property_lines("compose.properties")
    host, port = config.kafka.bootstrap.split(":")
    assert host in SERVICES
    assert f"PLAINTEXT://{host}:{port}" in kafka["advertised.listeners"].split(",")
    assert f":{port}" in kafka["listeners"]
    assert containers_port("kafka") == {"19092": "127.0.0.1:19092"}
    assert "HOST://localhost:19092" in kafka["advertised.listeners"].split(",")
    served = config.worker.http.rpartition(":")[2]
    assert f"EXPOSE {served}" in DOCKERFILE
    workers = [name for name in OWN if name.startswith("worker-")]
    assert [set(containers_port(name)) for name in workers] == [{served}] * 2
    scraped = yaml.safe_load((DOCKER / "prometheus" / "prometheus.yml").read_text())
    job, gateways = scraped["scrape_configs"]
    assert job["static_configs"] == [{"targets": [f"{name}:{served}" for name in workers]}]
    uploads = config.gateway.http.rpartition(":")[2]
    assert containers_port("gateway") == {uploads: f"127.0.0.1:{uploads}"}
    assert f":{uploads}/readyz" in SERVICES["gateway"]["healthcheck"]["test"][-1]
    assert uploads in DOCKERFILE.partition("EXPOSE ")[2].partition("\n")[0].split()
    assert gateways["static_configs"] == [{"targets": [f"gateway:{uploads}"]}]
    # Only a gateway keeps something there.
    holders = [name for name in OWN if f":{config.worker.data}" in str(SERVICES[name]["volumes"])]
    assert holders == ["gateway"]
    assert f"/dev/tcp/{host}/{port} " in SERVICES["kafka"]["healthcheck"]["test"][-1]
    assert f"-d -o ldpstream -g ldpstream {config.worker.data}" in DOCKERFILE
    for one in (job, gateways):
        assert one["authorization"] == {"credentials_file": "/run/secrets/read-token"}
    source = yaml.safe_load(
        (DOCKER / "grafana" / "provisioning" / "datasources" / "prometheus.yml").read_text()
    )
    assert source["datasources"][0]["url"] == "http://prometheus:9090"


def test_nothing_is_published_beyond_this_machine():
    for service in SERVICES.values():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))


def test_mounts_exist_are_read_only_and_where_services_look():
    mounts: dict[str, str] = {}
    for name, service in SERVICES.items():
        for volume in service.get("volumes", []):
            source, target, *mode = volume.split(":")
            if source.startswith("."):
                assert (DOCKER / source).exists(), (name, source)
                assert mode == ["ro"], (name, source)
                mounts[target] = source
            else:
                assert source in COMPOSE["volumes"]
    boards = yaml.safe_load(
        (DOCKER / "grafana" / "provisioning" / "dashboards" / "ldpstream.yml").read_text()
    )
    assert boards["providers"][0]["options"]["path"] in mounts
    home = SERVICES["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert (DOCKER / mounts[str(Path(home).parent)] / Path(home).name).exists()
    assert mounts[CONFIG] == "./ldpstream.toml"
    data = property_lines("compose.properties")["log.dirs"]
    assert f"kafka-data:{data}" in SERVICES["kafka"]["volumes"]


def test_secrets_are_files_that_make_draws_and_git_ignores():
    for name, secret in COMPOSE["secrets"].items():
        assert secret == {"file": f"./secrets/{name}"}
        assert f"docker/secrets/{name}" in (ROOT / "Makefile").read_text()
    assert "docker/secrets/" in (ROOT / ".gitignore").read_text().splitlines()
    for service in SERVICES.values():
        assert set(service.get("secrets", [])) <= COMPOSE["secrets"].keys()
        used = set(re.findall(r"/run/secrets/([a-z-]+)", str(service)))
        assert used <= set(service.get("secrets", []))


def test_containers_can_read_their_files_whatever_the_umask(tmp_path: Path):
    # As the attack `umask-077` does: `make up` with a stand-in for the engine.
    broker = Broker("none", "127.0.0.1:1")
    stand = Stand(broker=broker, folder=tmp_path)
    outcome = asyncio.run(private_umask(stand))
    assert outcome.held, outcome.figure


def test_the_digests_of_images_are_set_at_a_release(tmp_path: Path):
    docker = tmp_path / "docker"
    docker.mkdir()
    for name in ("Dockerfile", "compose.yaml", "pin.py"):
        shutil.copy(DOCKER / name, docker)
    pin = [sys.executable, str(docker / "pin.py")]
    before = subprocess.run([*pin, "--check"], capture_output=True, text=True)
    tags = set(re.findall(r"^(\S+): no digest", before.stdout, re.MULTILINE))
    assert before.returncode == 1
    assert tags == {
        image
        for image in re.findall(
            r"(?:^FROM |image: )(\S+)", DOCKERFILE + _compose_text(), re.MULTILINE
        )
        if ":" in image
    }
    registry = tmp_path / "bin" / "docker"
    registry.parent.mkdir()
    path = {"PATH": f"{registry.parent}:/usr/bin:/bin"}
    registry.write_text("#!/bin/sh\necho 'unknown manifest' >&2; exit 1\n")
    registry.chmod(0o755)
    refused = subprocess.run(pin, env=path, capture_output=True, text=True)
    assert refused.returncode == 1
    assert "unknown manifest" in refused.stderr
    assert (docker / "compose.yaml").read_text() == _compose_text()
    registry.write_text(
        '#!/bin/sh\n[ "$1 $2 $3" = "buildx imagetools inspect" ] || exit 1\n'
        "printf 'sha256:'; eval last=\\${$#}; printf %s \"$last\" | sha256sum | cut -d' ' -f1\n"
    )
    # Twice: the second run replaces the digests of the first.
    for _ in range(2):
        assert subprocess.run(pin, env=path, capture_output=True).returncode == 0
    after = subprocess.run([*pin, "--check"], capture_output=True, text=True)
    assert (after.returncode, after.stdout) == (0, "ok\n")
    text = (docker / "compose.yaml").read_text() + (docker / "Dockerfile").read_text()
    for tag in tags:
        assert f"{tag}@sha256:{hashlib.sha256(tag.encode()).hexdigest()}" in text
    stripped = re.sub("@sha256:[0-9a-f]{64}", "", text)
    assert stripped == _compose_text() + DOCKERFILE


def _compose_text() -> str:
    return (DOCKER / "compose.yaml").read_text()


def test_every_container_drops_rights_that_it_does_not_need():
    for name, service in SERVICES.items():
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        # Kafka's image writes its own configuration at start.
        assert service.get("read_only", False) is (name != "kafka"), name
        assert service["restart"] == "unless-stopped", name
        assert service["mem_limit"], name
        assert service["pids_limit"], name
        assert service["logging"]["options"].keys() == {"max-size", "max-file"}, name
        # Writable places are volumes, or in memory and bounded.
        assert all("size=" in one for one in service.get("tmpfs", [])), name
    users = re.findall(r"^USER (.*)$", DOCKERFILE, re.MULTILINE)
    assert users == ["10001:10001"]
    assert "groupadd --system --gid 10001 ldpstream" in DOCKERFILE
    assert "useradd --system --uid 10001 --gid ldpstream" in DOCKERFILE


def test_a_change_of_sources_downloads_nothing_again():
    first = DOCKERFILE.partition("FROM dependencies")[0]
    assert re.findall(r"^COPY (.*)$", first, re.MULTILINE) == ["constraints-base.txt ./"]
    assert first.count("--require-hashes") == DOCKERFILE.count("--require-hashes") == 1
    assert DOCKERFILE.count("--no-deps --no-build-isolation") == 1


def test_the_page_installs_what_the_image_does():
    page = blocks("docs/how-to/deploy.md")
    (install,) = [one.code for one in page if "pip install" in one.code]
    # But for what only an image needs: no cache, and no notice of another pip.
    image = DOCKERFILE.replace("\\\n", "").replace("--no-cache-dir --disable-pip-version-check", "")
    taken = [" ".join(words.split()) for words in re.findall("bin/pip install(.*)", image)]
    assert [
        " ".join(words.split()) for words in re.findall("bin/pip install(.*)", install)
    ] == taken
    (unit,) = [one.code for one in page if "[Service]" in one.code]
    assert f"ExecStart=/opt/ldpstream/current/bin/ldpstream worker -c {CONFIG}\n" in unit
    assert "ln -sfn $release /opt/ldpstream/current\n" in install


def test_images_are_pinned_and_kafka_is_the_one_of_the_tests():
    images = {service["image"] for service in SERVICES.values()} - {"ldpstream"}
    images |= set(re.findall(r"^FROM (\S+:\S+)", DOCKERFILE, re.MULTILINE))
    pinned = re.compile(r"([a-z/]+:v?\d+\.\d+\.\d+[a-z0-9.-]*)(@sha256:[0-9a-f]{64})?")
    assert all(pinned.fullmatch(image) for image in images)
    tested = re.search(r"kafka_2.13</artifactId>\s*<version>([^<]*)<", _pom())
    assert tested is not None
    assert f"apache/kafka:{tested[1]}" in {image.partition("@")[0] for image in images}


def _pom() -> str:
    return (DOCKER / "kafka" / "pom.xml").read_text()


def test_every_server_has_a_health_check():
    for name, service in SERVICES.items():
        assert ("healthcheck" in service) is (service.get("command", [""])[0] != "simulate"), name


def test_no_secret_is_in_an_environment():
    set_here = [pair for one in SERVICES.values() for pair in one.get("environment", {}).items()]
    secret = [pair for pair in set_here if re.search("PASSWORD|SECRET|TOKEN|KEY", pair[0])]
    assert secret
    for name, value in secret:
        assert name.endswith("__FILE")
        assert value.startswith("/run/secrets/"), name


def test_services_wait_until_their_dependencies_are_healthy():
    needed = {name: one["depends_on"] for name, one in SERVICES.items() if name != "kafka"}
    for name, others in needed.items():
        assert others, name
        for other, condition in others.items():
            assert condition == {"condition": "service_healthy"}, name
            assert "healthcheck" in SERVICES[other], other


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with what the Dockerfile copies and .dockerignore lets through."""
    folder = tmp_path_factory.mktemp("context")
    allowed = {
        line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if "!" in line
    }
    for line in DOCKERFILE.splitlines():
        if line.startswith("COPY ") and "--from" not in line:
            *sources, target = line.split()[1:]
            assert set(sources) <= allowed
            for source in sources:
                if (ROOT / source).is_dir():
                    assert target == source
                    ignore = shutil.ignore_patterns("__pycache__")
                    shutil.copytree(ROOT / source, folder / target, symlinks=True, ignore=ignore)
                else:
                    shutil.copy(ROOT / source, folder / target)
    return folder


def test_what_the_image_copies_is_enough_to_build_it(context: Path):
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    result = subprocess.run(
        [*command, "--disable-pip-version-check", "--wheel-dir", "wheels", "."],
        cwd=context,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    assert [path.suffix for path in (context / "wheels").iterdir()] == [".whl"]
