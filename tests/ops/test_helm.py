"""The chart of docker/helm: its manifests are checked, and their commands run, without a cluster.

`make chart` renders them, needs helm, and checks them against Kubernetes' schemas.
"""

import hashlib
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from ldpstream.agents.cli.main import main
from ldpstream.agents.config import Config, load_config
from ldpstream.agents.config.worker import Shard
from tests.brokers import broker
from tests.forked import Forked
from tests.ops.queries import DOCKER
from tests.ports import free_ports
from tests.processes import Worker, eventually

CHART = DOCKER / "helm"
FOLDER = Path(__file__).parent / "manifests"
NAMES = ("plain", "full")
TOKEN = "/run/secrets/ldpstream/read-token"
FILE = "/etc/ldpstream/ldpstream.toml"


def manifests(name: str) -> list[dict[str, Any]]:
    text = (FOLDER / f"{name}.yaml").read_text()
    return [one for one in yaml.safe_load_all(text) if one]


def pods(name: str) -> Iterator[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]:
    """Yield what runs pods, their spec and their one container."""
    for one in manifests(name):
        if one["kind"] in {"StatefulSet", "Deployment"}:
            spec = one["spec"]["template"]["spec"]
            (container,) = spec["containers"]
            yield one, spec, container


def written(name: str) -> str:
    (found,) = (one for one in manifests(name) if one["kind"] == "ConfigMap")
    return str(found["data"][Path(FILE).name])


def environment(container: dict[str, Any], pod: str) -> dict[str, str]:
    """Return a container's variables in a pod of this name; secrets are made up."""
    found = {}
    for one in container.get("env", []):
        given = one.get("value", pod if one["name"] == "POD" else "secret")
        found[one["name"]] = given.replace("$(POD)", pod)
    return found


def loaded(name: str, tmp_path: Path, given: dict[str, str]) -> Config:
    (tmp_path / "read-token").write_text("0123456789abcdef" * 4)
    text = written(name)
    assert text.count(TOKEN) == 1
    (tmp_path / "ldpstream.toml").write_text(text.replace(TOKEN, str(tmp_path / "read-token")))
    return load_config(tmp_path / "ldpstream.toml", environment=given)


@pytest.mark.parametrize("name", NAMES)
def test_manifests_are_those_of_the_chart(name: str):
    values = FOLDER / f"{name}-values.yaml"
    files = [
        CHART / "Chart.yaml",
        CHART / "values.yaml",
        *sorted(CHART.glob("templates/*")),
        values,
    ]
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    first = (FOLDER / f"{name}.yaml").read_text().partition("\n")[0]
    assert first == f"# Made by make chart of {digest}", "the chart has changed: make chart"


def test_rules_are_those_of_compose():
    rules = {file.stem for file in (DOCKER / "prometheus").glob("*.yml")}
    linked = {file.stem: file.resolve() for file in (CHART / "rules").iterdir()}
    assert set(linked) == {name for name in rules if not re.search("tests$|^prometheus$", name)}
    assert all(file.parent == DOCKER / "prometheus" for file in linked.values())
    listed = re.search(
        r"range \$file := list (.*) }}", (CHART / "templates/monitoring.yaml").read_text()
    )
    assert listed is not None
    assert set(re.findall('"([a-z]+)"', listed[1])) == set(linked)


def test_jobs_are_scraped_under_the_names_of_compose():
    scraped = yaml.safe_load((DOCKER / "prometheus" / "prometheus.yml").read_text())
    jobs = {one["job_name"] for one in scraped["scrape_configs"]}
    monitors = [one["spec"] for one in manifests("full") if one["kind"] == "ServiceMonitor"]
    assert {one["endpoints"][0]["relabelings"][0]["replacement"] for one in monitors} == jobs
    services = [one for one in manifests("full") if one["kind"] == "Service"]
    for one in monitors:
        selected = [
            service
            for service in services
            if one["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
            and all(
                rule == {"key": rule["key"], "operator": "Exists"}
                and rule["key"] in service["metadata"]["labels"]
                for rule in one["selector"].get("matchExpressions", [])
            )
        ]
        assert len(selected) == 1, one


@pytest.mark.parametrize("name", NAMES)
def test_commands_ports_paths_and_environment_agree(name: str, tmp_path: Path):
    services = {one["metadata"]["name"]: one for one in manifests(name) if one["kind"] == "Service"}
    policies = [one["spec"] for one in manifests(name) if one["kind"] == "NetworkPolicy"]
    budgets = [one["spec"] for one in manifests(name) if one["kind"] == "PodDisruptionBudget"]
    shards = []
    for one, spec, container in pods(name):
        given = environment(container, f"{one['metadata']['name']}-0")
        config = loaded(name, tmp_path, given)
        command = container["args"]
        parsed = CliRunner().invoke(main, [*command, "--help"], env=given)
        assert parsed.exit_code == 0, parsed.output
        assert command[1:3] == ["-c", FILE]
        served = {
            "worker": config.worker.http,
            "gateway": config.gateway.http,
        }[command[0]].rpartition(":")[2]
        labels = one["spec"]["template"]["metadata"]["labels"]
        assert one["spec"]["selector"]["matchLabels"].items() <= labels.items()
        (port,) = container["ports"]
        assert str(port["containerPort"]) == served
        reached = [s for s in services.values() if s["spec"]["selector"].items() <= labels.items()]
        assert {str(p["port"]) for s in reached for p in s["spec"]["ports"]} == {served}
        (policy,) = (
            p for p in policies if p["podSelector"]["matchLabels"].items() <= labels.items()
        )
        assert {str(p["port"]) for rule in policy["ingress"] for p in rule["ports"]} == {served}
        assert sum(b["selector"]["matchLabels"].items() <= labels.items() for b in budgets) == 1
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            path = "/readyz" if probe == "readinessProbe" else "/healthz"
            assert container[probe]["httpGet"] == {"path": path, "port": "http"}
        mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        claims = [c["metadata"]["name"] for c in one["spec"].get("volumeClaimTemplates", [])]
        assert set(mounts) == {*(volume["name"] for volume in spec["volumes"]), *claims}
        assert mounts["config"] == str(Path(FILE).parent)
        assert mounts["read-token"] == str(Path(TOKEN).parent)
        wanted = str(config.worker.data) if command[0] == "gateway" else None
        assert mounts.get("data") == wanted
        if command[0] == "worker":
            shards.append(Shard.parse(given["LDPSTREAM_SHARD"]))
            assert config.worker.instance == given["POD"]
            if shards[-1].total > 1:
                address = f"http://{given['POD']}.{one['spec']['serviceName']}:{served}"
                assert config.worker.advertise == address
            assert services[one["spec"]["serviceName"]]["spec"]["publishNotReadyAddresses"] is True
    totals = {shard.total for shard in shards}
    assert sorted(map(str, shards)) == sorted(f"{i + 1}/{n}" for n in totals for i in range(n))
    assert totals == ({1} if name == "plain" else {2, 4})


@pytest.mark.broker
@pytest.mark.slow
async def test_processes_of_the_manifests_answer_their_probes(tmp_path: Path):
    """The default worker and gateway: addresses, folders and the broker differ."""
    commands = [container["args"] for _, _, container in pods("plain")]
    assert sorted(command[0] for command in commands) == ["gateway", "worker"]
    with broker("embedded") as running, ExitStack() as stack:
        started = []
        for command, port in zip(sorted(commands, reverse=True), free_ports(2), strict=True):
            text = written("plain")
            for old, new in (
                ("[worker]", "enable_idempotence = false\n[worker]"),
                ("kafka:9092", running.bootstrap),
                (TOKEN, str(tmp_path / "read-token")),
                ("/var/lib/ldpstream", str(tmp_path / command[0])),
                ("0.0.0.0:6066", f"127.0.0.1:{port}"),
                ("0.0.0.0:8080", f"127.0.0.1:{port}"),
            ):
                assert text.count(old) == 1
                text = text.replace(old, new)
            (tmp_path / "read-token").write_text("0123456789abcdef" * 4)
            file = tmp_path / f"{command[0]}.toml"
            file.write_text(text)
            one = Worker(Forked([str(file) if word == FILE else word for word in command]))
            stack.callback(one.kill)
            one.wait_ready()
            one.url = f"http://127.0.0.1:{port}"
            started.append(one)
        for one in started:
            for path in ("/healthz", "/readyz"):
                await eventually(lambda one=one, path=path: one.status(path) == 200, what=path)
        for one in reversed(started):
            assert one.terminate() == 0
