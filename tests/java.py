"""How tests run Java: a fast start matters more than throughput, and brokers share the machine."""

import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

KAFKA: Final = Path(__file__).resolve().parent.parent / "docker" / "kafka"
CLASSES: Final = KAFKA / "jars" / "classes.jsa"
"""Archive of a broker's classes, which Java maps into memory instead of loading the jars."""
_PATIENCE_SECONDS: Final = 120.0


def java(heap: str) -> list[str]:
    """Return the command that a class of Kafka's jars, and its arguments, is appended to."""
    options = [heap, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dlog4j2.level=ERROR"]
    kept = [f"-XX:SharedArchiveFile={CLASSES}"] if CLASSES.exists() else []
    # The archive is valid for exactly this class path.
    jars = sorted(str(jar) for jar in (KAFKA / "jars").glob("*.jar"))
    return ["java", *options, *kept, "-cp", ":".join(jars)]


def keep_classes(properties: Path, serves: Callable[[], bool]) -> None:
    """Run a broker until it serves, and have Java archive the classes that it loaded.

    A start with the archive takes half the CPU time. Without one, or with another version of Java,
    the jars are read.
    """
    archive = CLASSES.with_suffix(".new")
    begin, *more = [*java("-Xmx512m"), "kafka.Kafka", str(properties)]
    with subprocess.Popen(
        [begin, f"-XX:ArchiveClassesAtExit={archive}", *more],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as running:
        try:
            deadline = time.monotonic() + _PATIENCE_SECONDS
            while running.poll() is None and not serves() and time.monotonic() < deadline:
                time.sleep(0.05)
            running.terminate()
            with suppress(subprocess.TimeoutExpired):
                running.wait(timeout=_PATIENCE_SECONDS)
        finally:
            running.kill()
    if archive.exists():
        archive.rename(CLASSES)
