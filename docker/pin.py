"""Write the digest of each image of docker/ behind its tag, or check that each has one.

python docker/pin.py           asks the registries, through `docker buildx`, and writes
python docker/pin.py --check   exit 1 where a digest is missing; asks nobody
"""

import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
FILES = (HERE / "Dockerfile", HERE / "compose.yaml")
# Our own image is built and has no tag.
IMAGE = re.compile(
    r"^(?P<before>FROM |\s+image: )(?P<tag>[a-z0-9./-]+:[\w.-]+)(?P<digest>@sha256:[0-9a-f]{64})?",
    re.MULTILINE,
)
ASK = ("docker", "buildx", "imagetools", "inspect", "--format", "{{.Manifest.Digest}}")


def digest(tag: str) -> str:
    """Return the digest that the registry has for a tag, of all platforms together.

    Raises:
        SystemExit: if there is none to be had.
    """
    try:
        asked = subprocess.run([*ASK, tag], capture_output=True, text=True)  # noqa: S603 (no shell)
    except OSError as error:
        raise SystemExit(f"docker: {error.strerror}; buildx asks the registries") from None
    found = asked.stdout.strip()
    if asked.returncode or not re.fullmatch("sha256:[0-9a-f]{64}", found):
        raise SystemExit(f"{tag}: expected a digest, got {asked.stderr.strip() or found!r}")
    return found


def main(arguments: list[str]) -> int:
    """Write, or check; returns the exit code."""
    texts = {file: file.read_text() for file in FILES}
    images = [one for text in texts.values() for one in IMAGE.finditer(text)]
    if arguments == ["--check"]:
        missing = sorted({one["tag"] for one in images if one["digest"] is None})
        print("\n".join(f"{tag}: no digest; make images sets it" for tag in missing) or "ok")
        return int(bool(missing))
    digests = {tag: digest(tag) for tag in sorted({one["tag"] for one in images})}
    for file, text in texts.items():
        file.write_text(
            IMAGE.sub(lambda one: f"{one['before']}{one['tag']}@{digests[one['tag']]}", text)
        )
    print("\n".join(f"{tag}@{found}" for tag, found in digests.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
