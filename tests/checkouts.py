"""Another commit of this repository as a folder of files, to run next to this one."""

import subprocess
import tarfile
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]


def extract(commit: str, folder: Path) -> Path:
    """Extract a commit below `folder`, with a link to Kafka's jars if they are here."""
    target, archive = folder / "before", folder / "before.tar"
    subprocess.run(["git", "-C", str(HERE), "archive", "-o", str(archive), commit], check=True)
    with tarfile.open(archive) as found:
        found.extractall(target, filter="tar")
    jars = Path("docker", "kafka", "jars")
    if (HERE / jars).exists():
        (target / jars).symlink_to(HERE / jars)
    return target
