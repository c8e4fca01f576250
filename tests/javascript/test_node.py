"""The JavaScript client under Node: vectors, refusals, uploads, and the programs of its README."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ldpstream.mechanisms import decode_frame
from tests import missing
from tests.exact.wire.test_vectors import spec_of
from tests.javascript.accepting import accepting
from tests.pages import Block, blocks

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


MODES = """[collection.modes]
mechanism = "randomized-response"
epsilon = 1.0
domain = { values = ["bus", "train", "walk", "car"] }
"""
"""Of docs/tutorials/first-collection.md, so that both pages show one fingerprint."""
GATEWAY = "https://gateway.example"
# What a browser has and Node lacks.
STORAGE = """
const items = new Map();
globalThis.localStorage = {
  getItem: (name) => items.get(name) ?? null,
  setItem: (name, text) => items.set(name, text),
  removeItem: (name) => items.delete(name),
};
globalThis.document = {};
const navigator = { locks: { request: (_, run) => run() } };
Object.defineProperty(globalThis, "navigator", { value: navigator });
"""


@pytest.mark.parametrize("block", blocks("clients/javascript/README.md"), ids=lambda b: b.heading)
def test_the_programs_of_the_readme_run(block: Block, tmp_path: Path):
    skip_without_node()
    modes = spec_of({"toml": MODES})
    documents = {"/v1/collections/modes/spec": json.dumps(modes.device_document()).encode()}
    with accepting(documents, tmp_path) as (url, uploads):
        program = block.code.replace(GATEWAY, url)
        assert block.language == "js"
        assert program.count(url) == block.code.count(GATEWAY) > 0
        assert modes.fingerprint.hex() in program
        # An import has to be at the module's beginning, or dynamic.
        program = program.replace('"./index.js"', json.dumps(f"file://{CLIENT}/index.js"))
        (tmp_path / "storage.mjs").write_text(STORAGE)
        (tmp_path / "program.mjs").write_text('import "./storage.mjs";\n' + program)
        ran = subprocess.run(
            ["node", "program.mjs"], cwd=tmp_path, capture_output=True, text=True, timeout=180
        )
    assert ran.returncode == 0, ran.stderr
    (upload,) = uploads
    assert upload.path == "/v1/collections/modes/reports"
    frame = decode_frame(upload.body, fingerprint=modes.fingerprint, report_bytes=1)
    assert frame.counts.tolist() == [1]
    assert ran.stdout in ("", "{ spent: 1, exact: '1' }\n")
