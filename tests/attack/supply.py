"""What a device or an operator relies on without looking: a lock, a mode."""

import json
import os
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Final

import yaml

from tests.attack.stand import Attack, Outcome, Stand
from tests.pages import ROOT

# Two programs that share a file by a storage of their own, as two tabs share localStorage: each a
# copy of the client, each told that the budget is one report.
_TWICE: Final = """
import { readFile, writeFile } from "node:fs/promises";
const [vectors, folder, runs] = process.argv.slice(2);
const { document, labels } = JSON.parse(await readFile(vectors, "utf8"))
  .find((one) => one.name === "listed blocks");
const HOUR = 3_600_000, START = 480_000 * HOUR;
const tabs = [await import("./1/index.js"), await import("./2/index.js")];
const tally = { twice: 0, refused: 0 };
for (let run = 0; run < Number(runs); run++) {
  const path = `${folder}/ledger-${run}`;
  const storage = () => ({
    getItem: () => readFile(path, "utf8").catch(() => null),
    setItem: (_, text) => writeFile(path, text),
  });
  const release = async ({ Collection, Ledger }, hour) => {
    const collection = await Collection.load(document);
    const collections = [[collection, HOUR]];
    const ledger = new Ledger({ storage: storage(), budget: 2, collections });
    return ledger.release(collection, labels[0], { timeMs: START + hour * HOUR });
  };
  const done = await Promise.allSettled(tabs.map(release));
  tally.twice += done.every(({ status }) => status === "fulfilled");
  tally.refused += done.every(({ reason }) => /lock/.test(reason?.message));
}
console.log(JSON.stringify(tally));
"""
_FAKE_DOCKER: Final = "#!/bin/sh\nexit 0\n"


async def unlocked_ledger(stand: Stand) -> Outcome:
    """Spend one budget from two programs at once, where nothing locks what they share."""
    runs = 20 if stand.short else 200
    program = stand.folder / "twice.mjs"
    program.write_text(_TWICE)
    # Two copies of all of its modules, as two tabs have.
    for copy in ("1", "2"):
        shutil.copytree(ROOT / "clients" / "javascript", stand.folder / copy)
    vectors = ROOT / "tests" / "vectors" / "devices.json"
    ran = _ran(["node", str(program), str(vectors), str(stand.folder), str(runs)])
    if ran.returncode:
        return Outcome(False, ran.stderr.strip()[-200:])
    tally = json.loads(ran.stdout)
    figure = (
        f"{tally['twice']} of {runs} spent twice, {tally['refused']} refused for want of a lock"
    )
    return Outcome(tally["twice"] == 0 and tally["refused"] == runs, figure)


async def private_umask(stand: Stand) -> Outcome:
    """Check out and `make up` with a umask of 077 and a stand-in for the container engine."""
    root = stand.folder / "checkout"
    root.mkdir()
    shutil.copy(ROOT / "Makefile", root)
    ignored = shutil.ignore_patterns("jars", "secrets")
    shutil.copytree(ROOT / "docker", root / "docker", ignore=ignored)
    for path in [root, *root.rglob("*")]:
        path.chmod(0o700 if path.is_dir() else 0o600)
    engine = stand.folder / "bin" / "docker"
    engine.parent.mkdir()
    engine.write_text(_FAKE_DOCKER)
    engine.chmod(0o755)
    ran = _ran(["/bin/sh", "-c", "umask 077 && exec make up"], cwd=root, first=engine.parent)
    if ran.returncode:
        return Outcome(False, ran.stderr.strip()[-200:])
    closed = {path for path in _mounted(root / "docker") if not _open(path)}
    folder = stat.S_IMODE((root / "docker" / "secrets").stat().st_mode)
    figure = (
        f"secrets' folder {folder:o}; files and folders unreadable in a container: {len(closed)}"
    )
    return Outcome(not closed and folder == 0o700, figure)


def _ran(
    command: list[str], *, cwd: Path | None = None, first: Path | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run a command; programs are looked for in `first` before the PATH."""
    path = os.environ["PATH"] if first is None else f"{first}:{os.environ['PATH']}"
    return subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )


def _mounted(docker: Path) -> list[Path]:
    """Return all that containers read of a checkout, by its compose file."""
    compose = yaml.safe_load((docker / "compose.yaml").read_text())
    sources = [secret["file"] for secret in compose["secrets"].values()]
    for service in compose["services"].values():
        sources += [one.split(":")[0] for one in service.get("volumes", ()) if one[0] == "."]
    found = [docker / source for source in sources]
    return [*found, *(inner for one in found for inner in one.rglob("*"))]


def _open(path: Path) -> bool:
    wanted = 0o005 if path.is_dir() else 0o004
    return path.stat().st_mode & wanted == wanted


ATTACKS = (
    Attack(
        "ledger-without-lock",
        "two programs do not spend one JavaScript ledger's budget twice",
        unlocked_ledger,
    ),
    Attack(
        "umask-077",
        "containers can read what a private umask has made, nobody else a secret",
        private_umask,
    ),
)
