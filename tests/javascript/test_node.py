"""The JavaScript client under Node: the vectors, refusals and uploads of clients/javascript/test.

With LDPSTREAM_REQUIRE_ALL=1 a missing Node fails the test instead of skipping it.
"""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests import missing

CLIENT = Path(__file__).resolve().parents[2] / "clients" / "javascript"
OLDEST = 18


def why_no_node() -> str | None:
    """Return why Node cannot run here, or None if it can."""
    if shutil.which("node") is None:
        return "node is not on the PATH; on Debian: apt-get install nodejs"
    said = subprocess.run(["node", "--version"], capture_output=True, text=True).stdout
    version = re.match(r"v(\d+)", said)
    if version is None or int(version[1]) < OLDEST:
        return f"the JavaScript client needs Node {OLDEST} or newer, got {said.strip()}"
    return None


@pytest.fixture(autouse=True)
def node() -> None:
    skip_without_node()


def skip_without_node() -> None:
    """Skip, or fail where Node is required, if it cannot run here."""
    reason = why_no_node()
    if reason is not None:
        missing.skip(reason)


@pytest.mark.parametrize("name", sorted(file.name for file in (CLIENT / "test").glob("*.test.js")))
def test_the_clients_own_tests_pass(name: str):
    result = subprocess.run(
        ["node", "--test", f"test/{name}"], cwd=CLIENT, capture_output=True, text=True, timeout=180
    )
    assert result.returncode == 0, result.stdout[-8000:] + result.stderr[-2000:]
    assert int(re.findall(r"^\S+ pass (\d+)$", result.stdout, re.MULTILINE)[0]) > 0


def test_the_client_imports_its_own_modules_alone():
    """No package is needed: every import leads to a file here, but for Node 18's WebCrypto.

    Storage for Node is a module of its own, which a browser never loads.
    """
    files = [CLIENT / "index.js", *(CLIENT / "src").rglob("*.js")]
    assert len(files) > 10
    named = [
        (f, m) for f in files for m in re.findall(r"(?:from|import\() ?\"(.*?)\"", f.read_text())
    ]
    assert not any(module.endswith("/file.js") for _, module in named)
    assert {module for _, module in named if not module.startswith(".")} == {"node:crypto"}
    assert all((f.parent / m).is_file() for f, m in named if m.startswith("."))
