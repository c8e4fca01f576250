"""The programs of clients/javascript/README.md under Node; only addresses are exchanged."""

import json
import subprocess
from pathlib import Path

import pytest

from ldpstream.mechanisms import decode_frame
from tests.exact.wire.test_vectors import spec_of
from tests.javascript.accepting import accepting
from tests.javascript.test_node import CLIENT, skip_without_node
from tests.pages import Block, blocks

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
